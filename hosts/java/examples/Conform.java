import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.util.List;
import ringhold.host.Actor;
import ringhold.host.Host;
import ringhold.host.Host.Has;
import ringhold.host.Refused;
import ringhold.host.Turn;
import ringhold.host.Value;

/** What `ringhold conform host` tries: docs/host-protocol.md, section "Conformance". */
final class Conform extends Actor {
    private static final int CALL_MS = 10_000;
    private byte[] note;

    public static void main(String[] args) throws Exception {
        new Host(args[0], "java", "").serve("conform", Conform::new, Has.DURABLE, Has.ALARMS, Has.SESSIONS).run();
    }

    @Override
    protected void start(Turn turn, byte[] state) {
        note = state;
    }

    @Override
    protected Value message(Turn turn, Message message) throws Exception {
        if (!message.arguments().isEmpty()) {
            return Value.integer(message.arguments().size());
        }
        String said = new String(message.payload(), ISO_8859_1);
        String[] words = said.split(" ", 4);
        String rest = words.length > 1 ? said.substring(words[0].length() + 1) : "";
        switch (words[0]) {
            case "echo":
                return Value.bytes(rest);
            case "text":
                return Value.line("OK");
            case "integer":
                return Value.integer(-42);
            case "nil":
                return Value.NIL;
            case "error":
                throw new Refused("ERR on purpose");
            case "fail":
                throw new IllegalStateException("on purpose");
            case "call":
                return Value.bytes(turn.call(kind(), bytes(words[1]), bytes(rest.substring(words[1].length() + 1)), CALL_MS));
            case "effects":
                turn.send(kind(), bytes("bob"), bytes("one"));
                turn.push(bytes("two"));
                turn.pushTo(kind(), List.of(bytes("a"), bytes("b")), bytes("three"));
                return null;
            case "put":
                turn.put(words[1], bytes(words[2]));
                return null;
            case "delete":
                turn.delete(words[1]);
                return null;
            case "get":
                return turn.get(words[1]) == null ? null : Value.bytes(turn.get(words[1]));
            case "undo":
                turn.put(words[1], bytes(words[2]));
                turn.undo();
                return null;
            case "putcall":
                turn.put(words[1], bytes(words[2]));
                turn.put(words[1], turn.call(kind(), bytes(words[3]), bytes(words[1]), CALL_MS));
                return null;
            case "alarm":
                turn.setAlarm(words[1], System.currentTimeMillis() + 3_600_000, 0, bytes(words[1]));
                return null;
            case "timer":
                turn.startTimer(Long.parseUnsignedLong(words[1]), 50, 0);
                return null;
            case "note":
                if (words.length == 1) {
                    return note == null ? null : Value.bytes(note);
                }
                note = bytes(rest);
                return null;
            default:
                throw new Refused("ERR unknown");
        }
    }

    @Override
    protected void timer(Turn turn, long timer) {
        turn.push(bytes("tick " + Long.toUnsignedString(timer)));
    }

    @Override
    protected void alarm(Turn turn, byte[] name, byte[] payload) {
        turn.put("rang", name);
    }

    @Override
    protected void session(Turn turn, Session session) {
        if (session.event() == Event.BOUND || session.event() == Event.REPLACED) {
            turn.push(session.session(), bytes("welcome"));
        }
    }

    @Override
    protected byte[] handoff() {
        return note;
    }

    /** Any bytes are text of this code. */
    private static byte[] bytes(String text) {
        return text.getBytes(ISO_8859_1);
    }
}
