package ringhold.host;

/**
 * An answer that is an error, not a bug. Thrown by an actor, it undoes what the step changed: a message is answered with it, a client
 * is turned away, an alarm comes again, a move waits. Thrown by {@link Turn#call}, it is what the other actor answered, or why there is no answer.
 */
public final class Refused extends Exception {
    private static final long serialVersionUID = 1;

    /** Why a call has no answer, as `Answer.status` says; 4: the called actor answered with an error. */
    public final int status;

    /** The text is one line, and its first word a code in capitals: {@code ERR no such item}. */
    public Refused(String text) {
        this(4, text);
    }

    Refused(int status, String text) {
        super(text, null, false, false);
        this.status = status;
    }
}
