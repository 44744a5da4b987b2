/*
 * Licensed under the Apache License, Version 2.0; see LICENSE in the distribution.
 */

import java.util.List;
import java.util.StringJoiner;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.nodemanager.NodeManager;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;

/**
 * One ResourceManager and one NodeManager in this process; they end, and their containers with them, when its standard
 * input closes.
 *
 * <p>Arguments: key=value pairs of configuration. The one line written is a JSON object, when the node is registered: the
 * ResourceManager's addresses, by their names in its configuration.
 */
public class MiniYarn {

  public static void main(String[] arguments) throws Exception {
    DefaultMetricsSystem.setMiniClusterMode(true); // two daemons in one process
    YarnConfiguration configuration = new YarnConfiguration();
    for (String pair : arguments) {
      int equals = pair.indexOf('=');
      configuration.set(pair.substring(0, equals), pair.substring(equals + 1));
    }
    ResourceManager resources = new ResourceManager();
    resources.init(configuration);
    resources.start();
    NodeManager node = new NodeManager();
    node.init(resources.getConfig()); // with the ports that the ResourceManager has taken
    node.start();
    // A NodeManager that is stopped kills its containers; one that is halted leaves them.
    Runtime.getRuntime().addShutdownHook(new Thread(node::stop));
    while (resources.getResourceScheduler().getNumClusterNodes() < 1) {
      Thread.sleep(50);
    }
    StringJoiner told = new StringJoiner(", ", "{", "}");
    for (String name :
        List.of(
            YarnConfiguration.RM_ADDRESS,
            YarnConfiguration.RM_SCHEDULER_ADDRESS,
            YarnConfiguration.RM_RESOURCE_TRACKER_ADDRESS,
            YarnConfiguration.RM_ADMIN_ADDRESS)) {
      told.add("\"" + name + "\": \"" + resources.getConfig().get(name) + "\"");
    }
    System.out.println(told);
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
