import static java.nio.charset.StandardCharsets.UTF_8;

import ringhold.host.Actor;
import ringhold.host.Host;
import ringhold.host.Host.Has;
import ringhold.host.Refused;
import ringhold.host.Turn;
import ringhold.host.Value;

/** A durable counter: "add N" and "get" answer what it has. */
final class Counter extends Actor {
    public static void main(String[] args) throws Exception {
        String token = System.getenv().getOrDefault("RINGHOLD_HOST_TOKEN", "");
        new Host(args[0], "counters", token).serve("counter", Counter::new, Has.DURABLE).run();
    }

    @Override
    protected Value message(Turn turn, Message message) throws Refused {
        String[] words = new String(message.payload(), UTF_8).split(" ");
        byte[] saved = turn.get("count");
        long count = saved == null ? 0 : Long.parseLong(new String(saved, UTF_8));
        if (words[0].equals("add") && words.length == 2) {
            try {
                count = Math.addExact(count, Long.parseLong(words[1]));
            } catch (ArithmeticException | NumberFormatException e) {
                throw new Refused("ERR not such a number");
            }
            turn.put("count", Long.toString(count).getBytes(UTF_8));
        } else if (!words[0].equals("get")) {
            throw new Refused("ERR add N, or get");
        }
        return Value.bytes(Long.toString(count));
    }
}
