import com.fasterxml.jackson.databind.JsonNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.JobContextImpl;
import org.apache.hadoop.mapred.TaskAttemptContextImpl;
import org.apache.hadoop.mapred.TaskAttemptID;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitterFactory;

/**
 * Hadoop's connectors with the committer that their settings name, driven by JSON lines: a request on stdin, an
 * answer on stdout.
 *
 * A request is an object with "command" and that command's arguments; an answer is {"ok": ...} or {"error": ...}. The
 * first is "configure". Writing tasks, committing them and committing the job are commands of their own, so that a
 * caller can count what each asks of the store. Jobs that were set up stay known by their job id until the process
 * ends. A container's or bucket's connector keeps the settings of the first job there: Hadoop keeps file systems by authority.
 */
class CommitterInterop {
    private static final String TRACKER = "20260101";

    final Configuration configuration = new Configuration();
    private final Map<String, ConnectorJob> jobs = new HashMap<>();

    public static void main(String[] arguments) throws IOException {
        JsonLines.serve(new CommitterInterop()::answer);
    }

    Object answer(JsonNode request) throws Exception {
        switch (request.get("command").asText()) {
            case "configure":
                set(configuration, request.get("settings"));
                return true;
            case "setup_job":
                Configuration own = new Configuration(configuration);
                set(own, request.get("settings"));
                String jobId = request.get("job_id").asText();
                jobs.put(jobId, new ConnectorJob(new Path(request.get("destination").asText()), jobId, own));
                return true;
            case "write_task":
                return job(request).writeTask(
                        request.get("task").asInt(),
                        request.get("attempt").asInt(),
                        request.get("files"),
                        request.get("commit").asBoolean());
            case "write_uniform_tasks":
                return job(request).writeUniformTasks(
                        request.get("tasks").asInt(),
                        request.get("files").asInt(),
                        request.get("directories").asInt(),
                        request.get("bytes").asInt(),
                        request.get("threads").asInt());
            case "commit_tasks":
                return job(request).commitTasks(request.get("threads").asInt());
            case "commit_job":
                return jobs.remove(request.get("job_id").asText()).commit();
            case "abort_job":
                return jobs.remove(request.get("job_id").asText()).abort();
            case "cpu_seconds":
                return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
            default:
                throw new IllegalArgumentException("unknown command " + request);
        }
    }

    private static void set(Configuration configuration, JsonNode settings) {
        settings.fields().forEachRemaining(
                setting -> configuration.set(setting.getKey(), setting.getValue().asText()));
    }

    private ConnectorJob job(JsonNode request) {
        return jobs.get(request.get("job_id").asText());
    }

    /** What is done with each task, by its number. */
    private interface EachTask<T> {
        T call(int number) throws IOException;
    }

    /** One job, by the committer that its settings name (`PathOutputCommitterFactory`). */
    private static final class ConnectorJob {
        private final Path destination;
        private final JobConf configuration;
        private final org.apache.hadoop.mapred.JobID mapReduceId;
        private final JobContext context;
        private final PathOutputCommitter driver;
        private final List<Attempt> written = new ArrayList<>();

        private record Attempt(PathOutputCommitter committer, TaskAttemptContext context) {

            /** Commit, as Spark does: asked first whether it is needed. */
            void commit() throws IOException {
                if (!committer.needsTaskCommit(context)) {
                    throw new IOException("Hadoop sees nothing to commit in " + context.getTaskAttemptID());
                }
                committer.commitTask(context);
            }
        }

        ConnectorJob(Path destination, String jobId, Configuration settings) throws IOException {
            this.destination = destination;
            this.configuration = new JobConf(settings);
            configuration.set("spark.sql.sources.writeJobUUID", jobId);
            this.mapReduceId = new org.apache.hadoop.mapred.JobID(TRACKER, 1);
            this.context = new JobContextImpl(configuration, mapReduceId);
            this.driver = committer(taskContext(0, 0));
            driver.setupJob(context);
        }

        private PathOutputCommitter committer(TaskAttemptContext task) throws IOException {
            return PathOutputCommitterFactory.createCommitter(destination, task);
        }

        /** A context with a configuration of its own: S3A's committers keep a task's paths in it. */
        private TaskAttemptContext taskContext(int task, int attempt) {
            TaskAttemptID id = new TaskAttemptID(
                    new org.apache.hadoop.mapred.TaskID(mapReduceId, TaskType.MAP, task), attempt);
            JobConf own = new JobConf(configuration);
            own.set("mapreduce.task.attempt.id", id.toString());
            return new TaskAttemptContextImpl(own, id);
        }

        /** Write an attempt's files, given as [relative path, content in base64]; commit it where asked to. */
        Object writeTask(int number, int attempt, JsonNode files, boolean commit) throws IOException {
            Attempt writing = begin(number, attempt);
            for (JsonNode file : files) {
                // Path(parent, child) would see a scheme in a name with a colon.
                Path path = new Path(writing.committer.getWorkPath(), new Path(null, null, file.get(0).asText()));
                LocalFiles.write(path.getFileSystem(configuration), path, file.get(1).binaryValue());
            }
            if (commit) {
                writing.commit();
            }
            return true;
        }

        private Attempt begin(int number, int attempt) throws IOException {
            TaskAttemptContext task = taskContext(number, attempt);
            PathOutputCommitter committer = committer(task);
            committer.setupTask(task);
            return new Attempt(committer, task);
        }

        /** Write tasks of files of one length, the files spread over directories p=00, p=01, … in turn. */
        Object writeUniformTasks(int tasks, int files, int directories, int bytes, int threads) throws Exception {
            byte[] content = new byte[bytes];
            written.addAll(forEach(tasks, threads, number -> {
                Attempt attempt = begin(number, 0);
                for (int file = 0; file < files; file++) {
                    int directory = (number * files + file) % directories;
                    Path path = new Path(
                            attempt.committer.getWorkPath(),
                            String.format("p=%02d/part-%03d-%04d.bin", directory, number, file));
                    LocalFiles.write(path.getFileSystem(configuration), path, content);
                }
                return attempt;
            }));
            return true;
        }

        /** Commit what was written. The seconds of each. */
        Object commitTasks(int threads) throws Exception {
            return forEach(written.size(), threads, number -> {
                long began = System.nanoTime();
                written.get(number).commit();
                return (System.nanoTime() - began) / 1e9;
            });
        }

        Object commit() throws IOException {
            long began = System.nanoTime();
            driver.commitJob(context);
            return (System.nanoTime() - began) / 1e9;
        }

        Object abort() throws IOException {
            driver.abortJob(context, JobStatus.State.FAILED);
            return true;
        }

        private static <T> List<T> forEach(int tasks, int threads, EachTask<T> work) throws Exception {
            ExecutorService pool = Executors.newFixedThreadPool(threads);
            try {
                List<Future<T>> begun = new ArrayList<>();
                IntStream.range(0, tasks).forEach(number -> begun.add(pool.submit(() -> work.call(number))));
                List<T> found = new ArrayList<>();
                for (Future<T> each : begun) {
                    found.add(each.get());
                }
                return found;
            } finally {
                pool.shutdownNow();
            }
        }
    }
}
