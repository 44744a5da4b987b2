import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.plan.DynamicPartitionCtx;

/** Hive's own removal of duplicates, driven by JSON lines: on a local directory, with its dynamic partitions or none. */
public final class HiveInterop {

    private HiveInterop() {
    }

    public static void main(String[] arguments) throws IOException {
        JsonLines.serve(HiveInterop::answer);
    }

    private static Object answer(JsonNode request) throws Exception {
        switch (request.get("command").asText()) {
            case "remove_duplicates":
                return removeDuplicates(new Path(request.get("path").asText()), request.get("partitions").asInt());
            case "task_of":
                return Utilities.getTaskIdFromFilename(request.get("name").asText());
            default:
                throw new IllegalArgumentException("no such command: " + request);
        }
    }

    private static Object removeDuplicates(Path path, int partitions) throws Exception {
        Configuration configuration = new Configuration();
        FileSystem fileSystem = FileSystem.getLocal(configuration).getRawFileSystem();
        DynamicPartitionCtx context = null;
        if (partitions > 0) {
            context = new DynamicPartitionCtx();
            context.setNumDPCols(partitions);
        }
        Utilities.removeTempOrDuplicateFiles(fileSystem, path, context, null, configuration);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("done", true);
        return answer;
    }
}
