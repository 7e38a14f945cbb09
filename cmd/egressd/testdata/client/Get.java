import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** A Java program as users write them: no setting of its own. */
public class Get {
    public static void main(String[] urls) {
        HttpClient client = HttpClient.newHttpClient();
        boolean fine = true;
        for (String url : urls) {
            try {
                HttpResponse<String> r = client.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
                System.out.println(r.statusCode() + " " + r.version() + " " + r.body());
                fine &= r.statusCode() == 200;
            } catch (Exception e) {
                System.out.println(e);
                fine = false;
            }
        }
        System.exit(fine ? 0 : 1);
    }
}
