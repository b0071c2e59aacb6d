package ringhold.host;

import java.util.List;

/**
 * One life of an actor. Its methods are called one at a time, each in a turn of its own, by a thread that may block. An exception that is not
 * {@link Refused} breaks the actor: its next life begins afresh, or from what it has saved.
 */
public abstract class Actor {
    int kind;
    byte[] id;
    long fence;

    /** The number of its kind. */
    public final int kind() {
        return kind;
    }

    public final byte[] id() {
        return id.clone();
    }

    /** Grows from owner to owner: for a store of your own. */
    public final long fence() {
        return fence;
    }

    /** It comes to life; state is what {@link #handoff} gave before it moved here, or null. */
    protected void start(Turn turn, byte[] state) throws Exception {}

    /** A request; null is an answer, too. */
    protected abstract Value message(Turn turn, Message message) throws Exception;

    protected void timer(Turn turn, long timer) throws Exception {}

    protected void alarm(Turn turn, byte[] name, byte[] payload) throws Exception {}

    /** A client came or went. {@link Refused} turns one away that has come. */
    protected void session(Turn turn, Session session) throws Exception {}

    /** Save what you have, if the kind has {@code flush}. {@link Refused}: it is asked again. */
    protected void flush(Turn turn) throws Exception {}

    /** It moves: its state, or null to start afresh. {@link Refused}: not now. */
    protected byte[] handoff() throws Exception {
        return null;
    }

    /**
     * @param payload what was sent, if it is no command
     * @param arguments of a command: its name, the key, the rest; else empty
     * @param fromKind the kind of the actor that sent it, if {@code from} is not empty
     * @param from that actor's id; empty: a client sent it
     */
    public record Message(byte[] payload, List<byte[]> arguments, boolean noReply, boolean idempotent, int fromKind, byte[] from) {}

    /** What became of a client; the numbers of {@code why} are in wire/host.proto. */
    public record Session(Event event, int why, long session, long former) {}

    /** In the order of wire/host.proto. */
    public enum Event { NONE, BOUND, REPLACED, RESUMED, LOST }
}
