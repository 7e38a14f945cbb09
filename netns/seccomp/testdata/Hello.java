import java.net.*;
import java.nio.file.*;

/** Threads, sockets, files and a child: what a JVM does of the kernel. */
class Hello {
    public static void main(String[] args) throws Exception {
        Thread t = new Thread(() -> System.out.print("he"));
        t.start();
        t.join();
        try (ServerSocket s = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
             Socket c = new Socket(s.getInetAddress(), s.getLocalPort())) {
            Files.writeString(Files.createTempFile("a", "b"), "x");
        }
        System.out.println(new String(new ProcessBuilder("echo", "llo").start().getInputStream().readAllBytes()).trim());
    }
}
