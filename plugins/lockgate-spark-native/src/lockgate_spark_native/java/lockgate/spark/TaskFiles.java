package lockgate.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/** All files of one task attempt: those below the destination, and those of each location beside it. */
final class TaskFiles {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final int task;
    private final long attempt;
    private final Map<String, Object> told = new LinkedHashMap<>();
    final StagedFiles below;
    final Map<String, StagedFiles> elsewhere = new LinkedHashMap<>();

    TaskFiles(int task, long attempt, String tasks, String marker) {
        this.task = task;
        this.attempt = attempt;
        this.below = new StagedFiles(task, attempt, tasks, marker, null);
    }

    /** Those of a location, whose tasks have their directories there. */
    StagedFiles at(String url, String tasks, String marker, Location location) {
        return elsewhere.computeIfAbsent(url, key -> new StagedFiles(task, attempt, tasks, marker, location));
    }

    /** Look at what was written: one listing each. */
    void list(Configuration conf) throws IOException {
        told.put("task", task);
        told.put("attempt", attempt);
        told.put("files", below.files(conf));
        Map<String, List<Object>> locations = new LinkedHashMap<>();
        for (Map.Entry<String, StagedFiles> each : elsewhere.entrySet()) {
            locations.put(each.getKey(), each.getValue().files(conf));
        }
        if (!locations.isEmpty()) {
            told.put("locations", locations);
        }
    }

    /** What the driver is told of the attempt; without rows where they are not known (fewer than none). */
    String message(long rows) {
        if (rows >= 0) {
            told.put("rows", rows);
        }
        try {
            return JSON.writeValueAsString(told);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException("the task's message cannot be written: " + error.getMessage(), error);
        }
    }

    void discard(Configuration conf) {
        below.discard(conf);
        elsewhere.values().forEach(each -> each.discard(conf));
    }
}
