package lockgate.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;

/**
 * The files of one task attempt: where each is written, and where it is to go. They lie side by side in the attempt's
 * own directory, which nobody else writes to, under the names that Lockgate's own task attempts give
 * (lockgate.model.layout, JobLayout.staged).
 */
final class StagedFiles {
    private static final Set<String> UNCOMPRESSED =
            Set.of("parquet", "orc", "csv", "json", "txt", "avro", "xml");

    private final Path directory;
    private final Path marker;
    private final String nonce = UUID.randomUUID().toString().replace("-", "").substring(0, 6);
    private final Map<String, String> targets = new LinkedHashMap<>();
    private final Set<String> taken = new HashSet<>();
    private final Location location;

    /** Below the destination; or, with a location, below that. The marker is the job's own, at its destination. */
    StagedFiles(int task, long attempt, String tasks, String marker, Location location) {
        this.directory = new Path(tasks, String.format(Locale.ROOT, "attempt_%06d_%d", task, attempt));
        this.marker = new Path(marker);
        this.location = location;
    }

    boolean has(String target) {
        return taken.contains(target);
    }

    /** Where the file that will be at this path of the destination is to be written. */
    String add(String target, TaskAttemptContext context) {
        String name = target.substring(target.lastIndexOf('/') + 1);
        refuseCompressionByName(name, context);
        try {
            if (targets.isEmpty()) {
                makeDirectory(context.getConfiguration());
            }
        } catch (IOException error) {
            throw new IllegalStateException("the task attempt's directory cannot be made: " + error + "\n  " + directory, error);
        }
        String staged = "_" + targets.size() + "-" + plainExtension(name) + "-" + nonce + "_";
        targets.put(staged, target);
        taken.add(target);
        return new Path(directory, staged).toString();
    }

    /** How many files the attempt was given names for. */
    int asked() {
        return targets.size();
    }

    /**
     * The attempt's files, each as its target, its name and its length, as one listing shows them. What was asked for
     * and is not there is left out: either the format has not written it, since there were no rows for it, or somebody
     * has deleted it (TaskFiles.list).
     */
    List<Object> files(Configuration conf) throws IOException {
        List<Object> files = new ArrayList<>();
        if (!targets.isEmpty()) {
            Map<String, Long> lengths = new HashMap<>();
            for (FileStatus status : directory.getFileSystem(conf).listStatus(directory)) {
                if (status.isFile()) {
                    lengths.put(status.getPath().getName(), status.getLen());
                }
            }
            for (Map.Entry<String, String> each : targets.entrySet()) {
                Long length = lengths.get(each.getKey());
                if (length != null) {
                    files.add(List.of(each.getValue(), each.getKey(), length));
                }
            }
        }
        return files;
    }

    /** Where the files are staged, for words about it. */
    @Override
    public String toString() {
        return directory.toString();
    }

    /** Deletes what the attempt has written. Only a courtesy: what is left goes with the job's directory. */
    void discard(Configuration conf) {
        if (targets.isEmpty()) {
            return;
        }
        try {
            directory.getFileSystem(conf).delete(directory, true);
        } catch (IOException error) {
            // The job's cleanup deletes it.
            return;
        }
    }

    /**
     * The marker is looked for first: a late attempt must not bring the directory of a job back that is over, and a
     * task on a host that does not see the destination must not write where nobody looks.
     */
    private void makeDirectory(Configuration conf) throws IOException {
        lookForJob(conf);
        if (location != null) {
            location.declare(conf);
            // Whoever ends the job looks for declarations after the marker counts no more.
            lookForJob(conf);
            location.mark(conf);
        }
        if (!directory.getFileSystem(conf).mkdirs(directory)) {
            throw new IOException("mkdirs answered false");
        }
    }

    private void lookForJob(Configuration conf) throws IOException {
        try {
            marker.getFileSystem(conf).getFileStatus(marker);
        } catch (FileNotFoundException error) {
            throw new IllegalStateException(
                    "the job of this task is over, or its destination is not seen from this host, or somebody has"
                            + " deleted it, as DROP TABLE and TRUNCATE do\n  " + marker
                            + ": not found\n  Next: if the job is still at work, write to a store that driver and"
                            + " executors share; a file: URL is such a one on a single host only");
        }
    }

    /**
     * Hadoop's text writers choose the codec by the name of the file where compression is not asked for, and they see
     * the name of the staged file, which has no extension.
     */
    private static void refuseCompressionByName(String name, TaskAttemptContext context) {
        String extension = name.substring(name.lastIndexOf('.') + 1);
        if (UNCOMPRESSED.contains(extension) || FileOutputFormat.getCompressOutput(context)) {
            return;
        }
        CompressionCodec codec = new CompressionCodecFactory(context.getConfiguration()).getCodec(new Path(name));
        if (codec != null) {
            throw new IllegalStateException(
                    "a file named ." + extension + " would not be compressed\n  " + name
                            + "\n  Next: give the option compression, rather than an extension of this name");
        }
    }

    private static String plainExtension(String name) {
        int dot = name.lastIndexOf('.');
        String extension = dot > 0 ? name.substring(dot + 1) : "";
        return extension.matches("[A-Za-z0-9]{1,12}") ? extension : "bin";
    }
}
