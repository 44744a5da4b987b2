import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.plan.DynamicPartitionCtx;
import org.apache.hadoop.hive.ql.plan.FileSinkDesc;

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
        configuration.set("hive.execution.engine", "tez");
        // Hive 4 refuses duplicates outright where speculative execution is on.
        for (String of : new String[] {
            "mapreduce.map.speculative", "mapreduce.reduce.speculative", "mapred.map.tasks.speculative.execution",
            "mapred.reduce.tasks.speculative.execution", "tez.am.speculation.enabled"}) {
            configuration.setBoolean(of, false);
        }
        FileSystem fileSystem = FileSystem.getLocal(configuration).getRawFileSystem();
        DynamicPartitionCtx context = null;
        if (partitions > 0) {
            context = new DynamicPartitionCtx();
            context.setNumDPCols(partitions);
        }
        remove(fileSystem, path, context, configuration);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("done", true);
        return answer;
    }

    /** Hive 4 has one argument more than Hive 2: whether it is a base directory, of a table with transactions. */
    private static void remove(FileSystem fileSystem, Path path, DynamicPartitionCtx context, Configuration configuration)
            throws Exception {
        Class<?>[] two = {
            FileSystem.class, Path.class, DynamicPartitionCtx.class, FileSinkDesc.class, Configuration.class};
        Class<?>[] four = Arrays.copyOf(two, two.length + 1);
        four[two.length] = boolean.class;
        try {
            try {
                Utilities.class.getMethod("removeTempOrDuplicateFiles", two)
                        .invoke(null, fileSystem, path, context, null, configuration);
            } catch (NoSuchMethodException newer) {
                Utilities.class.getMethod("removeTempOrDuplicateFiles", four)
                        .invoke(null, fileSystem, path, context, null, configuration, false);
            }
        } catch (InvocationTargetException error) {
            throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
        }
    }
}
