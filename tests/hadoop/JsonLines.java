import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Requests and answers as JSON, a line each, on standard input and output. */
final class JsonLines {

    /** What answers requests; what it throws is told to whoever asked. */
    interface Service {
        Object answer(JsonNode request) throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    private JsonLines() {
    }

    /** Answers requests until there are no more. */
    static void serve(Service service) throws IOException {
        // Logging and anything else that prints must not reach the channel of answers.
        PrintStream answers =
                new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = requests.readLine()) != null) {
            Map<String, Object> answer = new LinkedHashMap<>();
            try {
                answer.put("ok", service.answer(JSON.readTree(line)));
            } catch (Exception | LinkageError | AssertionError error) {
                error.printStackTrace();
                answer.put("error", error.toString());
            }
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
    }
}
