package lockgate.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;

/**
 * One job, as the driver has it. Each request holds all that the Python engine needs to know the job, so that a Python
 * that was started anew can go on with it: the job's state is on the store.
 */
final class DriverJob {
    private enum State { NEW, SET_UP, COMMITTING, COMMITTED, ENDED }

    private final Map<String, Object> job = new HashMap<>();
    private final List<String> python;
    private State state = State.NEW;

    DriverJob(String jobId, String url, boolean dynamic, List<String> replaced,
            List<String> replacedElsewhere, Configuration conf) {
        job.put("job_id", jobId);
        job.put("nonce", UUID.randomUUID().toString().replace("-", ""));
        job.put("url", url);
        job.put("dynamic", dynamic);
        job.put("replaced", replaced);
        job.put("replaced_locations", replacedElsewhere);
        job.put("settings", settings(conf));
        python = PythonCommand.of(conf);
    }

    Map<String, Object> setUp() {
        Map<String, Object> answer = ask("setup", List.of());
        state = State.SET_UP;
        return answer;
    }

    void commit(List<String> messages) {
        state = State.COMMITTING;
        ask("commit", messages);
        state = State.COMMITTED;
    }

    /**
     * Spark also calls this after a commit that failed, which has by then rolled back, or left its record for lockgate
     * recover; and after one that did not, if it fails later. The engine leaves alone what has begun to be committed.
     */
    void abort() {
        if (state == State.COMMITTED || state == State.ENDED) {
            return;
        }
        state = State.ENDED;
        try {
            ask("abort", List.of());
        } catch (LockgateException error) {
            // The cause of the failure is what Spark is to tell; what is left, lockgate jobs and gc find.
            System.err.println("lockgate: the job could not be aborted: " + error.getMessage());
        }
    }

    private Map<String, Object> ask(String what, List<String> messages) {
        Map<String, Object> request = new HashMap<>(job);
        request.put("do", what);
        request.put("messages", new ArrayList<>(messages));
        return DriverPython.running(python).ask(request);
    }

    /**
     * What may concern the job: Lockgate's own names, whether Spark shows progress, Hadoop's committer options and what
     * its connectors are told of stores, where somebody has set them, and names without a dot or with `store.` before
     * them, among which are the options of the write. Spark copies the session's settings and the options of the write
     * into the job's configuration (SessionState.newHadoopConfWithOptions).
     */
    private static Map<String, String> settings(Configuration conf) {
        Map<String, String> found = new HashMap<>();
        for (Map.Entry<String, String> each : conf) {
            String name = each.getKey().toLowerCase(Locale.ROOT);
            boolean ours = name.startsWith("spark.lockgate.") || name.startsWith("lockgate.")
                    || name.startsWith("store.") || name.indexOf('.') < 0;
            boolean hadoops = name.startsWith("mapreduce.manifest.committer.")
                    || name.startsWith("mapreduce.fileoutputcommitter.")
                    || name.startsWith("fs.") || name.startsWith("google.cloud.");
            boolean showsProgress = name.equals("spark.ui.showconsoleprogress");
            if ((ours || hadoops || showsProgress) && !isDefault(conf, each.getKey())) {
                String value = conf.get(each.getKey());
                if (value != null) {
                    found.put(each.getKey(), value);
                }
            }
        }
        return found;
    }

    private static boolean isDefault(Configuration conf, String name) {
        String[] sources = conf.getPropertySources(name);
        return sources != null && sources.length > 0 && sources[sources.length - 1].endsWith("-default.xml");
    }
}
