package lockgate.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * One job, as the driver has it. Each request holds all that the Python engine needs to know the job, so that a Python
 * that was started anew can go on with it: the job's state is on the store.
 */
final class DriverJob {
    private static final String HADOOP_PREFIX = "spark.hadoop.";
    /** Of this jar, by its manifest. The engine refuses a jar that may know less, or more, of a job than it does. */
    private static final String VERSION =
            Objects.requireNonNullElse(DriverJob.class.getPackage().getImplementationVersion(), "");
    /** Those that are set up, and whose commit or abort has not begun. */
    private static final Set<DriverJob> AT_WORK = ConcurrentHashMap.newKeySet();

    private enum State { NEW, SET_UP, COMMITTING, COMMITTED, ENDED }

    private final Map<String, Object> job = new HashMap<>();
    private final List<String> python;
    private volatile State state = State.NEW;

    DriverJob(String jobId, String url, boolean dynamic, List<String> replaced,
            List<String> replacedElsewhere, Configuration conf) {
        job.put("jar_version", VERSION);
        job.put("job_id", jobId);
        job.put("nonce", UUID.randomUUID().toString().replace("-", ""));
        job.put("url", url);
        job.put("dynamic", dynamic);
        job.put("replaced", replaced);
        job.put("replaced_locations", replacedElsewhere);
        job.put("settings", settings(conf));
        job.putAll(WrittenTable.told(new Path(url)));
        // The job's driver is this JVM, which may outlive a Python.
        job.put("driver_process", ProcessHandle.current().pid());
        python = PythonCommand.of(conf);
    }

    /** The jobs at work whose Python is started by this command. */
    static List<DriverJob> atWork(List<String> command) {
        return AT_WORK.stream().filter(each -> each.python.equals(command)).toList();
    }

    synchronized Map<String, Object> setUp() {
        Map<String, Object> answer = ask("setup", List.of());
        state = State.SET_UP;
        AT_WORK.add(this);
        // A Python that has ended just now may not have seen this job among those at work.
        DriverPython.runForJobsAtWork(python);
        return answer;
    }

    void commit(List<String> messages) {
        begin(State.COMMITTING);
        ask("commit", messages);
        state = State.COMMITTED;
    }

    /** From now on no Python is asked to keep this job alive, and none is being asked: that would outlast its end. */
    private synchronized void begin(State end) {
        state = end;
        AT_WORK.remove(this);
    }

    /** Have a Python that was started anew renew the job's sign of life, as the one that has set it up did. */
    synchronized void keepAlive(DriverPython anew) {
        if (state != State.SET_UP) {
            return;
        }
        try {
            anew.ask(request("keep_alive", List.of()));
        } catch (LockgateException error) {
            // Why it has ended is told, if it has; and what else is wrong, the job's commit tells.
            System.err.println("lockgate: nobody renews the sign of life of job " + job.get("job_id"));
        }
    }

    /**
     * Spark also calls this after a commit that failed, which has by then rolled back, or left its record for lockgate
     * recover; and after one that did not, if it fails later. The engine leaves alone what has begun to be committed.
     */
    void abort() {
        if (state == State.COMMITTED || state == State.ENDED) {
            return;
        }
        begin(State.ENDED);
        try {
            ask("abort", List.of());
        } catch (LockgateException error) {
            // The cause of the failure is what Spark is to tell; what is left, lockgate jobs and gc find.
            System.err.println("lockgate: the job could not be aborted: " + error.getMessage());
        }
    }

    private Map<String, Object> ask(String what, List<String> messages) {
        return DriverPython.running(python).ask(request(what, messages));
    }

    private Map<String, Object> request(String what, List<String> messages) {
        Map<String, Object> request = new HashMap<>(job);
        request.put("do", what);
        request.put("messages", new ArrayList<>(messages));
        return request;
    }

    /**
     * What may concern the job: Lockgate's own names, whether Spark shows progress, Hadoop's committer options and what
     * its connectors are told of stores, where somebody has set them, and what was set by a program under a name that
     * is not Spark's: options of the write are among those. Spark copies the session's settings and the options of the
     * write into the job's configuration (SessionState.newHadoopConfWithOptions).
     *
     * <p>A committer option that a running session was given behind spark.hadoop. is still called so there; what is
     * there under its own name goes first.
     */
    private static Map<String, String> settings(Configuration conf) {
        Map<String, String> found = new HashMap<>();
        Map<String, String> prefixed = new HashMap<>();
        for (Map.Entry<String, String> each : conf) {
            String name = each.getKey().toLowerCase(Locale.ROOT);
            String source = source(conf, each.getKey());
            boolean ours = name.startsWith("spark.lockgate.") || name.startsWith("lockgate.") || name.indexOf('.') < 0;
            boolean hadoops = isOfCommitters(name) || name.startsWith("fs.") || name.startsWith("google.cloud.");
            boolean showsProgress = name.equals("spark.ui.showconsoleprogress");
            boolean ofWrite = !name.startsWith("spark.") && !source.endsWith(".xml");
            String value = conf.get(each.getKey());
            if (value == null || source.endsWith("-default.xml")) {
                continue;
            }
            if (ours || hadoops || showsProgress || ofWrite) {
                found.put(each.getKey(), value);
            } else if (name.startsWith(HADOOP_PREFIX) && isOfCommitters(name.substring(HADOOP_PREFIX.length()))) {
                prefixed.put(each.getKey().substring(HADOOP_PREFIX.length()), value);
            }
        }
        prefixed.forEach(found::putIfAbsent);
        return found;
    }

    private static boolean isOfCommitters(String name) {
        return name.startsWith("mapreduce.manifest.committer.")
                || name.startsWith("mapreduce.fileoutputcommitter.")
                || name.equals("fs.azure.io.rate.limit");
    }

    /** The file that has set it last, or who else; empty where that is not known. */
    private static String source(Configuration conf, String name) {
        String[] sources = conf.getPropertySources(name);
        return sources == null || sources.length == 0 ? "" : sources[sources.length - 1];
    }
}
