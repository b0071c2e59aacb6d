package ringhold.host;

import java.util.Arrays;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;

/** One life of an actor at this host: an activation. */
final class Life {
    final Connection connection;
    final long activation;
    final NavigableMap<byte[], byte[]> values = new TreeMap<>(Arrays::compareUnsigned);
    final Map<Long, CompletableFuture<byte[]>> calls = new ConcurrentHashMap<>();
    Actor actor;
    long lastCall;
    volatile boolean over;
    Future<?> running;

    Life(Connection connection, long activation) {
        this.connection = connection;
        this.activation = activation;
    }

    void restore(byte[] key, byte[] value) {
        if (value == null) {
            values.remove(key);
        } else {
            values.put(key, value);
        }
    }

    /** Also amidst a turn: nothing that it says is heard any more. */
    void end() {
        over = true;
        calls.values().forEach(answer -> answer.cancel(false));
        if (running != null) {
            running.cancel(true);
        }
    }
}
