package ringhold.host;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/** A host: a process beside a node that has the code of its actors. */
public final class Host {
    /** What a kind has, as the node's {@code --kind} says it. */
    public enum Has { DURABLE, ALARMS, SESSIONS, FLUSH }

    record Kind(String name, Set<Has> has, Supplier<Actor> make) {}

    /** The node will not take this host, however often it comes: an option, a token or the host itself is wrong. */
    public static final class Unwanted extends IOException {
        private static final long serialVersionUID = 1;

        Unwanted(String why) {
            super("the node says goodbye: " + why);
        }
    }

    final String address;
    final String name;
    final String token;
    final Map<String, Kind> kinds = new LinkedHashMap<>();

    /**
     * @param address as the node's {@code --host}: {@code unix:PATH}, or {@code ADDRESS:PORT}
     * @param name for the node's log
     * @param token the first line of the node's {@code --host-token}; empty for a Unix socket
     */
    public Host(String address, String name, String token) {
        this.address = address;
        this.name = name;
        this.token = token;
    }

    public Host serve(String kind, Supplier<Actor> make, Has... has) {
        kinds.put(kind, new Kind(kind, Set.of(has), make));
        return this;
    }

    /** Serves, and connects again whenever the node has gone, until the thread is interrupted. */
    public void run() throws Unwanted, InterruptedException {
        String said = null;
        for (long pause = 100;; pause = Math.min(2 * pause, 1000)) {
            try (Connection connection = new Connection(this)) {
                try {
                    connection.run();
                } finally {
                    if (connection.welcomed) {
                        pause = 100;
                        said = null;
                    }
                }
            } catch (Unwanted e) {
                throw e;
            } catch (IOException e) {
                if (!e.toString().equals(said)) { // once
                    said = e.toString();
                    System.err.println(address + ": " + said + "; connecting again");
                }
            }
            Thread.sleep(pause);
        }
    }
}
