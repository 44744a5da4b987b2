import java.io.FileNotFoundException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Uses a store through Hadoop's ABFS connector and says what it finds, a line each. Arguments: key=value settings. */
public class AbfsJudge {

  public static void main(String[] arguments) throws Exception {
    Configuration configuration = new Configuration();
    for (String pair : arguments) {
      int equals = pair.indexOf('=');
      configuration.set(pair.substring(0, equals), pair.substring(equals + 1));
    }
    URI root = URI.create("abfs://data@devstoreaccount1.dfs.core.windows.net/");
    try (FileSystem store = FileSystem.get(root, configuration)) {
      Path odd = new Path("/a/b/t=10%3A00 x+#\u00e9");
      say("mkdirs", store.mkdirs(new Path("/a/b")));
      write(store, odd, new byte[5]);
      try {
        store.create(odd, false).close();
        say("created twice", true);
      } catch (FileAlreadyExistsException refused) {
        say("created twice", false);
      }
      Object before = store.getFileStatus(odd).toString().replaceAll(".*version='|'.*", "");
      say("renamed", store.rename(odd, new Path("/a/c")));
      Object after = store.getFileStatus(new Path("/a/c")).toString().replaceAll(".*version='|'.*", "");
      say("etag kept", before.equals(after));
      say("renamed without parent", store.rename(new Path("/a/c"), new Path("/none/c")));
      say("renamed what is not there", store.rename(new Path("/a/none"), new Path("/a/d")));
      write(store, new Path("/a/big"), new byte[20 << 20]);
      say("length", store.getFileStatus(new Path("/a/big")).getLen());
      try (FSDataInputStream in = store.open(new Path("/a/big"))) {
        in.readFully(10 << 20, new byte[1 << 20]);
      }
      StringBuilder names = new StringBuilder();
      for (FileStatus status : store.listStatus(new Path("/a"))) {
        names.append(status.getPath().getName()).append(status.isDirectory() ? "/ " : " ");
      }
      say("listed", names.toString().trim());
      say("directory renamed", store.rename(new Path("/a"), new Path("/z")));
      say("deleted", store.delete(new Path("/z"), true));
      try {
        store.getFileStatus(new Path("/z"));
        say("gone", false);
      } catch (FileNotFoundException gone) {
        say("gone", true);
      }
    }
    System.exit(0);
  }

  private static void write(FileSystem store, Path path, byte[] content) throws Exception {
    try (FSDataOutputStream out = store.create(path, false)) {
      out.write(content);
    }
  }

  private static void say(String what, Object found) {
    System.out.println(what + ": " + found);
  }
}
