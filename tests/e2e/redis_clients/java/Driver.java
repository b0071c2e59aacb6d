// Drives a Redis client of Java as ../README.md says.
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.RedisClient;

public class Driver {
    /** What each client does in its own way. */
    interface Client extends AutoCloseable {
        String set(String key, String value);

        String get(String key);

        long incr(String key);

        long pipeline(String key, int count) throws Exception;

        String multi(String key) throws Exception;

        @Override
        void close();
    }

    static class Jedis implements Client {
        final RedisClient c;

        Jedis() {
            var b = RedisClient.builder().hostAndPort(host, port);

            if (recommended) {
                b.clientConfig(DefaultJedisClientConfig.builder().socketTimeoutMillis(15000).build());
            }
            c = b.build();
        }

        public String set(String key, String value) {
            return c.set(key, value);
        }

        public String get(String key) {
            return c.get(key);
        }

        public long incr(String key) {
            return c.incr(key);
        }

        public long pipeline(String key, int count) {
            try (var p = c.pipelined()) {
                for (int i = 0; i < count; i++) {
                    p.incr(key);
                }
                var all = p.syncAndReturnAll();
                return (Long) all.get(count - 1);
            }
        }

        public String multi(String key) {
            try (var t = c.multi()) {
                t.incr(key);
                t.incr(key);
                return String.valueOf(t.exec());
            }
        }

        public void close() {
            c.close();
        }
    }

    static class Lettuce implements Client {
        final io.lettuce.core.RedisClient client;
        private StatefulRedisConnection<String, String> c;

        Lettuce() {
            var uri = RedisURI.create(host, port);

            client = io.lettuce.core.RedisClient.create(uri);
            if (recommended) {
                client.setOptions(ClientOptions.builder().autoReconnect(false).build());
            }
            c = client.connect();
        }

        /** Without autoReconnect a connection that is lost stays so: another is made. */
        synchronized StatefulRedisConnection<String, String> c() {
            if (!c.isOpen()) {
                c.close();
                c = client.connect();
            }
            return c;
        }

        public String set(String key, String value) {
            return c().sync().set(key, value);
        }

        public String get(String key) {
            return c().sync().get(key);
        }

        public long incr(String key) {
            return c().sync().incr(key);
        }

        public long pipeline(String key, int count) throws Exception {
            List<RedisFuture<Long>> all = new ArrayList<>();

            for (int i = 0; i < count; i++) {
                all.add(c().async().incr(key));
            }
            return all.get(count - 1).get();
        }

        public String multi(String key) {
            c().sync().multi();
            c().async().incr(key);
            c().async().incr(key);
            var done = c().sync().exec();
            if (done.wasDiscarded()) {
                throw new IllegalStateException("discarded");
            }
            return done.toString();
        }

        public void close() {
            c.close();
            client.shutdown(Duration.ZERO, Duration.ofSeconds(1));
        }
    }

    static class Counting {
        final List<Thread> threads = new ArrayList<>();
        final Set<String> texts = new TreeSet<>();
        volatile boolean over;
        int answered;
        int refused;
        int unknown;

        Counting(String key, int workers) {
            for (int i = 0; i < workers; i++) {
                var t = new Thread(() -> work(key));
                threads.add(t);
                t.start();
            }
        }

        void work(String key) {
            while (!over) {
                String text = null;
                try {
                    one.incr(key);
                } catch (Exception e) {
                    text = say(e);
                }
                note(text);
                try {
                    Thread.sleep(2);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }

        synchronized void note(String text) {
            if (text == null) {
                answered++;
                return;
            }
            if (text.matches(".*(MOVING|OVERLOADED|NOKIND|QUARANTINED).*")) {
                refused++;
            } else {
                unknown++;
            }
            if (texts.size() < 4) {
                texts.add(text.substring(0, Math.min(80, text.length())));
            }
        }

        String stop() throws InterruptedException {
            over = true;
            for (Thread t : threads) {
                t.join();
            }
            return "answered=" + answered + " refused=" + refused + " unknown=" + unknown + " " + String.join(" | ", texts);
        }
    }

    static String name;
    static boolean recommended;
    static String host;
    static int port;
    static Client one;
    static Counting counting;

    static Client made() {
        return name.equals("jedis") ? new Jedis() : new Lettuce();
    }

    static String say(Exception e) {
        return (e.getClass().getSimpleName() + ": " + e.getMessage()).replaceAll("\\s+", " ");
    }

    static String act(String[] words) throws Exception {
        int number = words.length > 2 ? Integer.parseInt(words[2]) : 0;

        switch (words[0]) {
            case "start":
                one = made();
                one.set("start", "1");
                if (!"1".equals(one.get("start"))) {
                    throw new IllegalStateException("GET said something else");
                }
                return String.valueOf(one.incr("start"));
            case "pipeline":
                return String.valueOf(one.pipeline(words[1], number));
            case "churn":
                long last = 0;
                for (int i = 0; i < number; i++) {
                    try (var other = made()) {
                        last = other.incr(words[1]);
                    }
                }
                return String.valueOf(last);
            case "multi":
                return one.multi(words[1]);
            case "count":
                counting = new Counting(words[1], number);
                return "counting";
            default:
                return counting.stop();
        }
    }

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in));

        name = args[0];
        recommended = args[1].equals("recommended");
        host = args[2];
        port = Integer.parseInt(args[3]);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                System.out.println("ok " + act(line.split(" ")).replaceAll("\\s+", " "));
            } catch (Exception e) {
                System.out.println("error " + say(e) + (e.getCause() == null ? "" : " " + e.getCause().getMessage()));
            }
            System.out.flush();
        }
        System.exit(0);
    }
}
