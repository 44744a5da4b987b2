package lockgate.spark;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The Python that runs the engine for this JVM: started at the first request, kept, and started anew if it has ended: at
 * the next request, or at once where jobs are at work, whose signs of life it is to renew. Requests and answers are lines
 * of JSON over its standard input and output, many at once; it ends when its input does.
 */
final class DriverPython {
    private static final Map<List<String>, DriverPython> RUNNING = new HashMap<>();
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TypeReference<Map<String, Object>> OBJECT = new TypeReference<>() {};
    private static final String OTHER_PYTHON =
            "  Next: set spark.lockgate.python to a Python that has lockgate and the store's plugin";
    private static final int TOLD_MAX = 4000;
    /**
     * So long a Python that has just been started may say nothing: another program, which never answers, would keep the
     * write waiting for ever. The property `lockgate.python.silent.seconds` says another limit.
     */
    private static final int SILENT_SECONDS = 300;
    private static final int DRAWN_MS = 200;
    /** One that was started for the jobs at work and ends within this time is not replaced before the next request. */
    private static final int AT_ONCE_SECONDS = 60;

    private final List<String> command;
    private final Process process;
    private final OutputStream requests;
    private final StringBuilder said = new StringBuilder();
    private final Thread listening;
    private final AtomicLong numbers = new AtomicLong();
    private final Map<Long, CompletableFuture<Map<String, Object>>> waiting = new ConcurrentHashMap<>();
    private final CompletableFuture<Void> heard = new CompletableFuture<>();
    private CompletableFuture<Void> drawing;
    private final boolean forJobsAtWork;
    private final long started = System.nanoTime();
    private volatile boolean ended;

    static DriverPython running(List<String> command) {
        return running(command, false);
    }

    private static synchronized DriverPython running(List<String> command, boolean forJobsAtWork) {
        DriverPython found = RUNNING.get(command);
        if (found == null || found.ended || !found.process.isAlive()) {
            DriverPython made = new DriverPython(command, forJobsAtWork);
            RUNNING.put(command, made);
            daemon("lockgate-python-jobs", () -> DriverJob.atWork(command).forEach(each -> each.keepAlive(made)));
            return made;
        }
        return found;
    }

    /** See that one runs, if there are jobs at work: it renews their signs of life, as each that is started does. */
    static void runForJobsAtWork(List<String> command) {
        if (DriverJob.atWork(command).isEmpty()) {
            return;
        }
        try {
            running(command, true);
        } catch (LockgateException error) {
            tellUnrenewed(error.getMessage());
        }
    }

    private static void tellUnrenewed(String why) {
        System.err.println("lockgate: nobody renews the signs of life of the jobs at work before the next write begins or"
                + " ends: " + why);
    }

    private DriverPython(List<String> command, boolean forJobsAtWork) {
        this.command = command;
        this.forJobsAtWork = forJobsAtWork;
        ProcessBuilder builder = new ProcessBuilder(command);
        // A directory named lockgate in the working directory is not the package.
        builder.environment().put("PYTHONSAFEPATH", "1");
        try {
            process = builder.start();
        } catch (IOException error) {
            throw new LockgateException(failure("cannot be started: " + error.getMessage()) + OTHER_PYTHON, error);
        }
        requests = process.getOutputStream();
        listening = daemon("lockgate-python-errors", this::passErrorsOn);
        daemon("lockgate-python-answers", this::takeAnswers);
        daemon("lockgate-python-silence", this::endIfSilent);
    }

    /** The answer to a request. An interruption of the calling thread does not cut it short: the engine goes on. */
    Map<String, Object> ask(Map<String, Object> request) {
        long number = numbers.incrementAndGet();
        CompletableFuture<Map<String, Object>> answer = new CompletableFuture<>();
        waiting.put(number, answer);
        try {
            request.put("number", number);
            byte[] line = (JSON.writeValueAsString(request) + "\n").getBytes(StandardCharsets.UTF_8);
            synchronized (requests) {
                requests.write(line);
                requests.flush();
            }
        } catch (IOException error) {
            // Its end is noticed, and told, by the thread that takes answers.
            if (!process.isAlive()) {
                joinQuietly(listening);
                answer.completeExceptionally(new LockgateException(failure(end())));
            }
        }
        if (ended) {
            answer.completeExceptionally(new LockgateException(failure(end())));
        }
        Map<String, Object> told = wait(answer, request);
        waiting.remove(number);
        if (told.get("error") != null) {
            throw new LockgateException((String) told.get("error"));
        }
        return told;
    }

    /** End a process that has not said a word yet. It has done nothing for a job: it says one before it reads a request. */
    private void endIfSilent() {
        int limit = Integer.getInteger("lockgate.python.silent.seconds", SILENT_SECONDS);
        try {
            heard.get(limit, TimeUnit.SECONDS);
        } catch (TimeoutException error) {
            append("it has said nothing for " + limit + " seconds, and was ended");
            process.destroyForcibly();
            failAll();
        } catch (ExecutionException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private void failAll() {
        ended = true;
        heard.complete(null);
        for (CompletableFuture<Map<String, Object>> each : waiting.values()) {
            each.completeExceptionally(new LockgateException(failure(end())));
        }
    }

    private static Map<String, Object> wait(CompletableFuture<Map<String, Object>> answer, Map<String, Object> request) {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return answer.get();
                } catch (InterruptedException error) {
                    interrupted = true;
                } catch (ExecutionException error) {
                    throw new LockgateException(error.getCause().getMessage() + next(request), error);
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private void takeAnswers() {
        try (BufferedReader lines = reader(process.getInputStream())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                Map<String, Object> answer = JSON.readValue(line, OBJECT);
                if (answer == null) {
                    throw new IOException("it is none of this program's: " + line);
                }
                heard.complete(null);
                if (answer.get("progress") instanceof String text) {
                    draw(text);
                    continue;
                }
                if (!(answer.get("number") instanceof Number number)) {
                    throw new IOException("it is none of this program's: " + line);
                }
                CompletableFuture<Map<String, Object>> asked = waiting.get(number.longValue());
                if (asked != null) {
                    asked.complete(answer);
                }
            }
        } catch (IOException | RuntimeException error) {
            // Whatever it is, nobody takes answers any more, and who waits for one is to hear of it.
            append("its answer cannot be read: " + error.getMessage());
            endRequests();
        }
        joinQuietly(listening);
        failAll();
        if (!forJobsAtWork || System.nanoTime() - started > TimeUnit.SECONDS.toNanos(AT_ONCE_SECONDS)) {
            runForJobsAtWork(command);
        } else if (!DriverJob.atWork(command).isEmpty()) {
            tellUnrenewed(failure(end()));
        }
    }

    /** It ends with its input, once the commits that are under way have ended. */
    private void endRequests() {
        try {
            requests.close();
        } catch (IOException error) {
            append(error.getMessage());
        }
    }

    /**
     * Write to the terminal what a job commit has sent for it. A terminal that takes nothing (Ctrl-S) must not keep the
     * answers waiting: then this text, and what follows it, is left out.
     */
    private void draw(String text) {
        if (drawing != null && !drawing.isDone()) {
            return;
        }
        drawing = new CompletableFuture<>();
        CompletableFuture<Void> now = drawing;
        daemon("lockgate-progress", () -> {
            System.err.print(text);
            System.err.flush();
            now.complete(null);
        });
        try {
            now.get(DRAWN_MS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException | ExecutionException error) {
            return;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private void passErrorsOn() {
        try (BufferedReader lines = reader(process.getErrorStream())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.err.println(line);
                append(line);
            }
        } catch (IOException error) {
            append(error.getMessage());
        }
    }

    private void append(String line) {
        synchronized (said) {
            said.append("  ").append(line).append('\n');
            if (said.length() > TOLD_MAX) {
                said.delete(0, said.length() - TOLD_MAX);
            }
        }
    }

    private String failure(String what) {
        synchronized (said) {
            return "the Python that commits for Spark's writers " + what + "\n  " + String.join(" ", command) + "\n" + said;
        }
    }

    /** How it has ended: its streams may be closed a moment before its exit status is there. */
    private String end() {
        try {
            if (process.waitFor(2, TimeUnit.SECONDS)) {
                int status = process.exitValue();
                return "has ended, " + (status > 128 ? "by signal " + (status - 128) : "with exit status " + status);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        return "has ended";
    }

    /** What to do where it has ended before it has answered this request. */
    private static String next(Map<String, Object> request) {
        if (!"commit".equals(request.get("do"))) {
            return OTHER_PYTHON;
        }
        String url = quoted((String) request.get("url"));
        String job = url + " " + request.get("job_id");
        return "  Next: do not write again before you know how this job stands: lockgate jobs " + url
                + " says whether it is committed; if it has crashed, lockgate recover " + job
                + " finishes it, and with --undo restores the destination";
    }

    /** For a shell, as Python's shlex.quote has it. */
    private static String quoted(String word) {
        return word.matches("[A-Za-z0-9_@%+=:,./-]+") ? word : "'" + word.replace("'", "'\"'\"'") + "'";
    }

    private static BufferedReader reader(java.io.InputStream stream) {
        return new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8));
    }

    private static void joinQuietly(Thread thread) {
        try {
            thread.join(2000);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
