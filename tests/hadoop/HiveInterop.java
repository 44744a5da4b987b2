import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.io.StorageFormatDescriptor;
import org.apache.hadoop.hive.ql.io.StorageFormatFactory;
import org.apache.hadoop.hive.ql.metadata.Table;
import org.apache.hadoop.hive.ql.plan.DynamicPartitionCtx;
import org.apache.hadoop.hive.ql.plan.FileSinkDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.Reporter;

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
                return removeDuplicates(
                        new Path(request.get("path").asText()),
                        request.get("partitions").asInt(),
                        request.get("buckets").asInt(),
                        request.get("format").asText());
            case "task_of":
                return Utilities.getTaskIdFromFilename(request.get("name").asText());
            default:
                throw new IllegalArgumentException("no such command: " + request);
        }
    }

    /** With a number of buckets it is a job of MapReduce, into a table of so many, whose missing ones Hive makes. */
    private static Object removeDuplicates(Path path, int partitions, int buckets, String format) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set("hive.execution.engine", buckets > 0 ? "mr" : "tez");
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
            context.setNumBuckets(buckets);
        }
        FileSinkDesc sink = null;
        if (buckets > 0) {
            Table table = new Table("default", "t");
            table.setNumBuckets(buckets);
            sink = new FileSinkDesc();
            sink.setTable(table);
            sink.setTableInfo(table(format));
        }
        List<?> missing = remove(fileSystem, path, context, sink, configuration);
        if (buckets > 0) {
            create(missing, sink, configuration);
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("made", missing == null ? 0 : missing.size());
        return answer;
    }

    private static TableDesc table(String format) throws Exception {
        StorageFormatDescriptor of = new StorageFormatFactory().get(format);
        Properties properties = new Properties();
        properties.setProperty("columns", "id");
        properties.setProperty("columns.types", "int");
        String serde = of.getSerde() == null ? "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe" : of.getSerde();
        properties.setProperty("serialization.lib", serde);
        return new TableDesc(
                Class.forName(of.getInputFormat()).asSubclass(InputFormat.class),
                Class.forName(of.getOutputFormat()),
                properties);
    }

    /** Hive 2 takes the table's format with the rest of the sink, Hive 4 by itself. */
    private static void create(List<?> missing, FileSinkDesc sink, Configuration configuration) throws Exception {
        for (Method method : Utilities.class.getDeclaredMethods()) {
            if (method.getName().equals("createEmptyBuckets")) {
                method.setAccessible(true);
                try {
                    if (method.getParameterCount() == 4) {
                        method.invoke(null, configuration, missing, sink, Reporter.NULL);
                    } else {
                        method.invoke(null, configuration, missing, false, sink.getTableInfo(), Reporter.NULL);
                    }
                } catch (InvocationTargetException error) {
                    throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
                }
                return;
            }
        }
        throw new NoSuchMethodException("Utilities.createEmptyBuckets");
    }

    /** Hive 4 has one argument more than Hive 2: whether it is a base directory, of a table with transactions. */
    private static List<?> remove(
            FileSystem fileSystem, Path path, DynamicPartitionCtx context, FileSinkDesc sink, Configuration configuration)
            throws Exception {
        Class<?>[] two = {
            FileSystem.class, Path.class, DynamicPartitionCtx.class, FileSinkDesc.class, Configuration.class};
        Class<?>[] four = Arrays.copyOf(two, two.length + 1);
        four[two.length] = boolean.class;
        try {
            try {
                return (List<?>) Utilities.class.getMethod("removeTempOrDuplicateFiles", two)
                        .invoke(null, fileSystem, path, context, sink, configuration);
            } catch (NoSuchMethodException newer) {
                return (List<?>) Utilities.class.getMethod("removeTempOrDuplicateFiles", four)
                        .invoke(null, fileSystem, path, context, sink, configuration, false);
            }
        } catch (InvocationTargetException error) {
            throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
        }
    }
}
