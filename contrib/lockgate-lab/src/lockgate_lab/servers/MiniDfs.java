/*
 * Licensed under the Apache License, Version 2.0; see LICENSE in the distribution.
 */

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * One NameNode and its DataNodes in this process, steered by lines on standard input; it ends when that closes.
 *
 * <p>Arguments: directory, NameNode RPC port, NameNode HTTP port, number of DataNodes, "format" or "keep", then
 * key=value pairs of configuration. Each line written is one JSON object; the first comes when HDFS is up.
 */
public class MiniDfs {

  public static void main(String[] arguments) throws Exception {
    Configuration configuration = new HdfsConfiguration();
    configuration.set("dfs.replication", "1");
    configuration.set("dfs.namenode.safemode.extension", "0");
    // A restarted NameNode serves once the DataNode has found it again: let it look often.
    configuration.set("dfs.heartbeat.interval", "1");
    for (int i = 5; i < arguments.length; i++) {
      int equals = arguments[i].indexOf('=');
      configuration.set(arguments[i].substring(0, equals), arguments[i].substring(equals + 1));
    }
    boolean format = arguments[4].equals("format");
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(configuration, new File(arguments[0]))
            .nameNodePort(Integer.parseInt(arguments[1]))
            .nameNodeHttpPort(Integer.parseInt(arguments[2]))
            .numDataNodes(Integer.parseInt(arguments[3]))
            .format(format)
            .build();
    cluster.waitActive();
    System.out.printf(
        "{\"url\": \"hdfs://127.0.0.1:%d\", \"namenode_port\": %d, \"http_port\": %d}%n",
        cluster.getNameNodePort(), cluster.getNameNodePort(), Integer.parseInt(arguments[2]));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.println(answer(cluster, line.trim()));
    }
    Runtime.getRuntime().halt(0);
  }

  private static String answer(MiniDFSCluster cluster, String command) {
    try {
      switch (command) {
        case "stop-namenode":
          cluster.shutdownNameNode(0);
          break;
        case "start-namenode":
          cluster.restartNameNode(0, true);
          break;
        default:
          return "{\"error\": \"unknown command\"}";
      }
      return "{\"done\": \"" + command + "\"}";
    } catch (Exception e) {
      return "{\"error\": \"" + e.toString().replace("\\", "/").replace("\"", "'").replace("\n", " ") + "\"}";
    }
  }
}
