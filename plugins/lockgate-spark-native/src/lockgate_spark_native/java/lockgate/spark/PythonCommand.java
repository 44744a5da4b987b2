package lockgate.spark;

import java.io.File;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/** Which Python runs the engine: the setting for it, else the one of the driver, else python3. */
final class PythonCommand {
    private PythonCommand() {}

    static List<String> of(Configuration conf) {
        for (String name : List.of("spark.lockgate.python", "spark.pyspark.driver.python", "spark.pyspark.python")) {
            String given = conf.get(name, "").trim();
            if (!given.isEmpty()) {
                return List.of(given, "-m", "lockgate.spark.native_driver");
            }
        }
        for (String name : List.of("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")) {
            String given = System.getenv(name);
            // PYSPARK_DRIVER_PYTHON may name a notebook server.
            if (given != null && new File(given.trim()).getName().startsWith("py")) {
                return List.of(given.trim(), "-m", "lockgate.spark.native_driver");
            }
        }
        return List.of("python3", "-m", "lockgate.spark.native_driver");
    }
}
