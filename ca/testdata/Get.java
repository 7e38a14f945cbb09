import java.net.Socket;
import java.util.ArrayList;
import javax.net.ssl.*;

/** Get PORT HOST...: a handshake with 127.0.0.1:PORT for each HOST, checked as
 *  HTTPS is, by the roots that the JVM has by default. */
class Get {
    public static void main(String[] args) throws Exception {
        for (int i = 1; i < args.length; i++) {
            try (Socket plain = new Socket("127.0.0.1", Integer.parseInt(args[0]));
                 SSLSocket s = (SSLSocket) ((SSLSocketFactory) SSLSocketFactory.getDefault())
                     .createSocket(plain, args[i], 443, true)) {
                SSLParameters p = s.getSSLParameters();
                p.setEndpointIdentificationAlgorithm("HTTPS");
                s.setSSLParameters(p);
                s.startHandshake();
                System.out.println("ok " + args[i]);
            }
        }
    }
}
