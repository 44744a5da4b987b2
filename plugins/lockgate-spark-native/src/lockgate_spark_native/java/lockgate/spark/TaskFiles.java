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

    /**
     * Look at what was written: one listing each.
     *
     * <p>Spark asks for a further file only when it has a row for it (FileFormatDataWriter), so of several files each
     * is there, unless somebody has deleted it: whoever replaces what is in a location does, and Hadoop makes the
     * directory anew for the next file. A single one may be missing for want of rows, which are not counted yet: the
     * driver compares (lockgate.spark.native_job).
     */
    void list(Configuration conf) throws IOException {
        told.put("task", task);
        told.put("attempt", attempt);
        List<Object> here = below.files(conf);
        told.put("files", here);
        int asked = below.asked();
        int found = here.size();
        Map<String, List<Object>> locations = new LinkedHashMap<>();
        for (Map.Entry<String, StagedFiles> each : elsewhere.entrySet()) {
            List<Object> there = each.getValue().files(conf);
            locations.put(each.getKey(), there);
            asked += each.getValue().asked();
            found += there.size();
        }
        if (asked > 1 && found < asked) {
            StringBuilder where = new StringBuilder("\n  " + below);
            elsewhere.values().forEach(each -> where.append("\n  ").append(each));
            throw new IllegalStateException(
                    "of the " + asked + " files that this task has written, somebody has deleted " + (asked - found)
                            + " where they were staged" + where
                            + "\n  Next: nothing was moved; run the job again, and keep other writers from deleting"
                            + " _lockgate below the destination, and below a partition's location");
        }
        told.put("missing", asked - found);
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
