// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;
using System.Text;
using System.Threading.Tasks;

namespace Ringhold
{
    // The client's state, without sockets, and with a clock that tests replace. Times are in milliseconds.
    //
    //     Idle -Connect-> Waiting -its time has come-> Dialling -> Greeting -hello-ack, auth-ok, bound-> Ready
    //     Ready -goaway-> Leaving -all is answered-> Waiting, for another gateway
    //     any -the line drops-> Waiting        any -kicked for good, Dispose()-> Ended
    public sealed partial class Client
    {
        private const int Version = 1, SessionSize = 24, BegunSize = SessionSize + 8 + 4, BodyLeast = 512, PingMax = 64;
        private const uint NameBind = 0x7fffffff, NameUnbind = 0x7ffffffe, NameMax = 0x7fffff00 /* of a request */, KickTooLarge = 101;
        private const int AckMs = 500, AckCount = 16, AckSize = 16 * 1024, AgainMs = 200, LeaveMs = 10000, OwedQuietMs = 10000;
        private const long HeartbeatLeastMs = 1000; // less is no gateway's
        private const int UnreadMax = 64 * 1024; // of a gateway that does not read: it gets no more pongs and acks
        private const long RetryMaxMs = 3600 * 1000; // nobody is sent away for longer
        private static readonly byte[] Nothing = new byte[0];

        private enum State { Idle, Waiting, Dialling, Greeting, Ready, Leaving, Ended }

        private enum SessionState { Wanted, Asked, Resuming, Held, Leaving }

        // What was asked and has no answer. A notify has no end, and is forgotten once it is sent.
        private sealed class Entry
        {
            internal uint Name;
            internal byte[] Out;
            internal TaskCompletionSource<byte[]> Ends;
            internal bool Idempotent, Sent;
            internal bool Here; // on this line
            internal bool Former; // on an earlier one
            internal bool Kept; // in a session that outlives its line
            internal long Due;

            // What a line was given is never changed.
            internal void Mark(bool again)
            {
                byte flags = (byte)(Out[Packets.Head + 4] & ~Flag.Again | (again && Sent && Kept ? Flag.Again : 0));
                if (flags != Out[Packets.Head + 4])
                {
                    Out = (byte[])Out.Clone();
                    Out[Packets.Head + 4] = flags;
                }
            }
        }

        // What it is bound to, or wants to be.
        private sealed class Session
        {
            internal Actor Actor;
            internal byte[] Id;
            internal TaskCompletionSource<bool> Settle, Left;
            internal SessionState State;
            internal bool Plain; // it ends with its line
            internal byte[] Name; // to resume it
            internal ulong Pushed;
            internal bool WasHeld;
            internal bool Waits; // for answers, to be asked
            internal int Unacked, UnackedSize;
        }

        private struct Timer
        {
            internal long Due;
            internal Action Rings;
        }

        private readonly Dictionary<string, Timer> timers = new Dictionary<string, Timer>();
        private readonly Dictionary<uint, LinkedListNode<Entry>> asked = new Dictionary<uint, LinkedListNode<Entry>>();
        private readonly LinkedList<Entry> order = new LinkedList<Entry>(); // of these, as they were asked; so they are due
        private State state = State.Idle;
        private int turn; // which gateway
        private ILine line;
        private Packets packets;
        private int failures;
        private long readyAt;
        private int bodyMax = Packets.BodyMax; // of a packet, as the gateway said last
        private int toldMax; // bytes of the largest notify that went out on this line
        private long retryMs;
        private bool greeted, known, pinged;
        private long heartbeatMs, heardAt;
        private long size; // bytes of all that is asked
        private uint lastName;
        private Session session;
        private Actor? home; // what we were bound to before we were rebound
        private uint attempts; // resumes that were sent, of all sessions
        private byte[] token;
        private byte[] given; // a token, by the gateway that knew us last: shown instead of ours
        private bool showedGiven;
        private TaskCompletionSource<bool> connecting;

        private static byte[] IdOf(Actor actor)
        {
            byte[] id = Encoding.UTF8.GetBytes(actor.Id ?? "");
            if (id.Length < 1 || id.Length > 255)
            {
                throw new ArgumentException("an id has 1 to 255 bytes");
            }
            return id;
        }

        private Task ConnectNow()
        {
            if (state == State.Ready || state == State.Leaving)
            {
                return Task.FromResult(true);
            }
            if (connecting == null)
            {
                connecting = new TaskCompletionSource<bool>();
            }
            Task task = connecting.Task;
            if (state == State.Idle || state == State.Ended)
            {
                lastName = state == State.Ended ? 0 : lastName;
                failures = 0;
                DialIn(0);
            }
            return task;
        }

        // ---- telling: when a step is done, and nothing that is told can come in between

        private readonly Queue<Action> told = new Queue<Action>();
        private bool telling;
        private ExceptionDispatchInfo thrown;

        private void Tell(Action what) => told.Enqueue(what);

        // What a handler throws stops none of the others; Update() throws it in the end.
        private void TellAll()
        {
            if (telling)
            {
                return; // who is told something disposes of the client, or updates it
            }
            telling = true;
            while (told.Count > 0)
            {
                Action next = told.Dequeue();
                try
                {
                    next();
                }
                catch (Exception e)
                {
                    thrown = thrown ?? ExceptionDispatchInfo.Capture(e);
                }
            }
            telling = false;
        }

        private void Finish(TaskCompletionSource<bool> task)
        {
            if (task != null)
            {
                Tell(() => task.TrySetResult(true));
            }
        }

        private void Fail(TaskCompletionSource<bool> task, Exception why)
        {
            if (task != null)
            {
                Tell(() =>
                {
                    if (task.TrySetException(why))
                    {
                        GC.KeepAlive(task.Task.Exception); // seen: nobody need await it
                    }
                });
            }
        }

        // ---- asking

        private Exception Ask(byte type, Actor actor, byte[] payload, bool idempotent, TimeSpan? deadline, TaskCompletionSource<byte[]> ends)
        {
            byte[] id = IdOf(actor);
            double ms = deadline.HasValue ? Math.Ceiling(deadline.Value.TotalMilliseconds) : 0;
            if (ms < 0 || ms > int.MaxValue || (deadline.HasValue && ms == 0))
            {
                throw new ArgumentException("no such deadline");
            }
            if (state == State.Ended)
            {
                return new KickedException(0, "the client was closed");
            }
            if (lastName == NameMax)
            {
                return new RingholdException((uint)Status.Overloaded, Encoding.UTF8.GetBytes("all names are used: dispose, and connect"), 0);
            }
            byte[] data = Packets.Asking(type, lastName + 1, id, actor.Kind, idempotent ? Flag.Idempotent : (byte)0, (uint)ms, payload ?? Nothing);
            if (asked.Count >= options.RequestsMax || size + data.Length > options.OutMax)
            {
                return new RingholdException((uint)Status.Overloaded, Encoding.UTF8.GetBytes("too much is under way"), AgainMs);
            }
            if (data.Length > Packets.Head + bodyMax)
            {
                return new RingholdException((uint)Status.BadRequest, TooLarge(), 0);
            }
            lastName++;
            var entry = new Entry { Name = lastName, Out = data, Ends = ends, Idempotent = idempotent };
            entry.Due = options.Now() + (long)options.AnswerTimeout.TotalMilliseconds;
            asked[entry.Name] = order.AddLast(entry);
            size += data.Length;
            Flush();
            return null;
        }

        private byte[] TooLarge() => Encoding.UTF8.GetBytes("the gateway takes " + bodyMax + " bytes");

        private void Forget(Entry entry)
        {
            LinkedListNode<Entry> node;
            if (asked.TryGetValue(entry.Name, out node) && node.Value == entry)
            {
                asked.Remove(entry.Name);
                order.Remove(node);
                size -= entry.Out.Length;
            }
        }

        private void Settle(Entry entry, Status status, byte[] payload = null)
        {
            Settle(entry, (uint)status, payload ?? Nothing, 0);
        }

        private void Settle(Entry entry, uint status, byte[] payload, long retry)
        {
            Forget(entry);
            if (entry.Ends == null)
            {
                return;
            }
            if (status == (uint)Status.Ok)
            {
                Tell(() => entry.Ends.SetResult(payload));
            }
            else
            {
                Tell(() => entry.Ends.SetException(new RingholdException(status, payload, retry)));
            }
        }

        private void Flush()
        {
            // Behind a bind that is not answered yet nothing is sent: it would run even if that is refused.
            if (state != State.Ready || (session != null && session.State != SessionState.Held && session.State != SessionState.Leaving))
            {
                return;
            }
            LinkedListNode<Entry> node = order.Last;
            while (node != null && node.Previous != null && !node.Previous.Value.Here)
            {
                node = node.Previous;
            }
            while (node != null)
            {
                Entry entry = node.Value;
                node = node.Next;
                if (entry.Here)
                {
                    continue;
                }
                entry.Here = true;
                Send(entry.Out);
                entry.Sent = true;
                entry.Kept = session != null && session.Name != null;
                if (entry.Ends == null)
                {
                    toldMax = Math.Max(toldMax, entry.Out.Length);
                    Forget(entry);
                }
            }
        }

        // All before this name are answered.
        private uint Least()
        {
            foreach (Entry entry in order)
            {
                if (entry.Ends != null)
                {
                    return entry.Name;
                }
            }
            return lastName + 1;
        }

        private bool Owes()
        {
            foreach (Entry entry in order)
            {
                if (entry.Here)
                {
                    return true;
                }
            }
            return false;
        }

        private void Send(byte[] data)
        {
            if (line != null)
            {
                line.Send(data);
            }
        }

        // Does the gateway read? One that floods us and does not must not fill our memory.
        private bool IsRead() => line != null && line.Unread < UnreadMax;

        // ---- timers

        private void After(string name, long ms, Action rings)
        {
            timers[name] = new Timer { Due = options.Now() + ms, Rings = rings };
        }

        private long Due()
        {
            long due = order.Count > 0 ? order.First.Value.Due : long.MaxValue;
            foreach (Timer timer in timers.Values)
            {
                due = Math.Min(due, timer.Due);
            }
            return due;
        }

        private void Ring()
        {
            for (;;)
            {
                long now = options.Now();
                string first = null;
                foreach (KeyValuePair<string, Timer> timer in timers)
                {
                    if (timer.Value.Due <= now && (first == null || timer.Value.Due < timers[first].Due))
                    {
                        first = timer.Key;
                    }
                }
                if (first != null)
                {
                    Action rings = timers[first].Rings;
                    timers.Remove(first);
                    rings();
                }
                else if (order.Count > 0 && order.First.Value.Due <= now)
                {
                    Entry late = order.First.Value;
                    Settle(late, late.Sent ? Status.Timeout : Status.Moving);
                    BindIfItWaits();
                    LeaveIfDone();
                }
                else
                {
                    return;
                }
            }
        }

        private long Jittered(long least) => least + (long)(options.Draw() * least);

        // ---- the line

        private void DialIn(long ms)
        {
            state = State.Waiting;
            After("dial", ms, () =>
            {
                state = State.Dialling;
                After("greet", (long)options.GreetTimeout.TotalMilliseconds, () => Leave("the gateway did not greet in time"));
                packets = new Packets(options.PacketMax);
                line = (options.Dial ?? Lines.Dial)(Gateway, this);
            });
        }

        internal System.Net.Security.RemoteCertificateValidationCallback CheckCertificate => options.CheckCertificate;

        // What a line tells, inside of Update(): it is there; bytes came; it is gone.
        internal void OnOpened(ILine of)
        {
            if (line == of)
            {
                state = State.Greeting;
                heardAt = options.Now();
                Send(new Writer(PacketType.Hello).Number(0x5248, 2).Number(Version, 1).Number(Version, 1).Number(0, 2).Whole());
            }
        }

        internal void OnBytes(ILine of, byte[] data, int size)
        {
            if (line != of)
            {
                return;
            }
            heardAt = options.Now();
            pinged = false;
            try
            {
                byte type;
                byte[] body;
                packets.Put(data, size);
                while (line == of && packets.Next(out type, out body))
                {
                    Hear(type, body);
                }
            }
            catch (InvalidPacketException)
            {
                if (line == of)
                {
                    Leave("the gateway sent an invalid packet");
                }
            }
        }

        internal void OnClosed(ILine of, string why, bool tooLarge)
        {
            if (line == of && tooLarge)
            {
                OnKick(KickTooLarge, why);
            }
            else if (line == of)
            {
                Leave(why);
            }
        }

        private void DropLine()
        {
            timers.Clear();
            if (line != null)
            {
                line.Close();
            }
            line = null;
            greeted = known = pinged = false;
        }

        // The line is lost, or given up.
        private void Leave(string why)
        {
            long highest = (long)options.BackOffMax.TotalMilliseconds;
            // A gateway that greets and hangs up is as good as none: only one that lasted ends a row.
            if ((state == State.Ready || state == State.Leaving) && options.Now() - readyAt >= highest)
            {
                failures = 0;
            }
            DropLine();
            if (session != null)
            {
                session.Plain = false; // the next gateway may be a newer one
                if (session.State == SessionState.Leaving || session.Left != null)
                {
                    Unbound();
                }
                else
                {
                    session.State = SessionState.Wanted;
                }
            }
            Rewind(session != null && session.Name != null);
            double most = options.BackOffMin.TotalMilliseconds * Math.Pow(2, Math.Min(failures, 16));
            long wait = retryMs > 0 ? Jittered(retryMs) : (long)(options.Draw() * Math.Min(highest, most));
            retryMs = 0;
            failures++;
            turn = (turn + 1) % gateways.Count;
            DialIn(wait);
            Tell(() => Lost?.Invoke(why));
        }

        // From the oldest on, again: what never ran, what the session runs once, what may run twice.
        private void Rewind(bool keeps)
        {
            toldMax = 0;
            foreach (Entry entry in new List<Entry>(order))
            {
                entry.Here = false;
                entry.Former = entry.Sent;
                if (entry.Sent && !(keeps && entry.Kept) && !entry.Idempotent)
                {
                    Settle(entry, Status.Unknown);
                }
            }
        }

        // The gateway says what it takes: what is larger does not go out.
        private void Limit(uint most)
        {
            bodyMax = (int)Math.Min(most, (uint)Packets.BodyMax);
            foreach (Entry entry in new List<Entry>(order))
            {
                if (entry.Out.Length > Packets.Head + bodyMax)
                {
                    Settle(entry, entry.Sent ? Status.Unknown : Status.BadRequest, TooLarge());
                }
            }
        }

        // Something that went out on this line was too large: it is not sent again. False: nothing went out. A gateway reads in
        // order and stops at the first that is too large: what is as large as any that went out was that one, or came behind it. If
        // a notify was as large it is not sure; nor is it of what an earlier line sent.
        private bool Blame()
        {
            int most = 0;
            foreach (Entry entry in order)
            {
                most = entry.Here ? Math.Max(most, entry.Out.Length) : most;
            }
            foreach (Entry entry in new List<Entry>(order))
            {
                if (entry.Here && entry.Out.Length == most)
                {
                    bool unsure = entry.Former || most <= toldMax;
                    Settle(entry, unsure ? Status.Unknown : Status.BadRequest, Encoding.UTF8.GetBytes("the gateway calls it too large"));
                }
            }
            return most > 0 || toldMax > 0;
        }

        private void ForgetSession()
        {
            foreach (Entry entry in order)
            {
                entry.Kept = false;
                entry.Mark(false);
            }
        }

        private void End(KickedException why, bool tell)
        {
            DropLine();
            state = State.Ended;
            foreach (Entry entry in new List<Entry>(order))
            {
                Settle(entry, entry.Sent ? Status.Unknown : Status.Moving);
            }
            Session s = session;
            session = null;
            if (s != null)
            {
                Fail(s.Settle, why);
                Finish(s.Left);
            }
            Fail(connecting, why);
            connecting = null;
            if (tell)
            {
                Tell(() => Kicked?.Invoke(why));
            }
        }

        // ---- greeting

        private void Hear(byte type, byte[] body)
        {
            var r = new Reader(body);
            switch (type)
            {
                case PacketType.HelloAck:
                    OnHelloAck(r);
                    return;
                case PacketType.AuthOk:
                    OnAuthOk(r);
                    return;
                case PacketType.Ping:
                    OnPing(body);
                    return;
                case PacketType.Pong:
                    return;
                case PacketType.Kick:
                    OnKick(r.U32(), r.Text());
                    return;
                case PacketType.Goaway:
                    OnGoaway(r.U32(), r.Text());
                    return;
                case PacketType.Response:
                    MustBeKnown();
                    OnResponse(r);
                    return;
                case PacketType.Push:
                    MustBeKnown();
                    OnPush(r.Number(8), r.Rest());
                    return;
                case PacketType.Rebound:
                    MustBeKnown();
                    OnRebound(r);
                    return;
                case PacketType.Begun:
                    MustBeKnown();
                    OnBegun(r);
                    return;
                default:
                    if (type < 128)
                    {
                        throw new InvalidPacketException();
                    }
                    return;
            }
        }

        private void MustBeKnown()
        {
            if (!known)
            {
                throw new InvalidPacketException();
            }
        }

        private void OnHelloAck(Reader r)
        {
            int size = r.Left;
            ulong version = r.Number(1);
            r.Number(1);
            ulong flags = r.Number(2);
            uint heartbeat = r.U32(), largest = r.U32();
            if (greeted || size < 24 || version != Version || largest < BodyLeast)
            {
                throw new InvalidPacketException();
            }
            greeted = true;
            heartbeatMs = heartbeat > 0 ? Math.Max(heartbeat, HeartbeatLeastMs) : 0;
            Limit(largest);
            Listen();
            if ((flags & 1) == 0)
            {
                GoOn();
            }
            else if (given != null || token.Length > 0)
            {
                ShowWho();
            }
            else
            {
                End(new KickedException(106, "the gateway asks for a token"), true);
            }
        }

        private void ShowWho()
        {
            showedGiven = given != null;
            if (!showedGiven && home.HasValue && session != null)
            {
                // Who shows what it had at first is who it was then.
                session.Actor = home.Value;
                session.Id = IdOf(home.Value);
                session.Name = null;
                home = null;
            }
            Send(new Writer(PacketType.Auth).Bytes(given ?? token).Whole());
        }

        // An entity, and perhaps a token of it.
        private Actor TakeWho(ref Reader r, out byte[] id, out DateTime expires)
        {
            ulong seconds = r.Number(8);
            var kind = (ushort)r.Number(2);
            id = r.Bytes((int)r.Number(1));
            if (id.Length == 0)
            {
                throw new InvalidPacketException();
            }
            if (r.Left >= 2)
            {
                byte[] made = r.Bytes((int)r.Number(2));
                given = made.Length > 0 ? made : given;
            }
            expires = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc).AddSeconds(Math.Min(seconds, 250000000000));
            return new Actor(kind, Encoding.UTF8.GetString(id));
        }

        private void OnRebound(Reader r)
        {
            DateTime expires;
            byte[] id; // perhaps no text
            given = null;
            Actor who = TakeWho(ref r, out id, out expires);
            if (session != null && session.State == SessionState.Held)
            {
                timers.Remove("ack");
                ForgetSession();
                home = home ?? session.Actor;
                session = new Session { Actor = who, Id = id, Settle = session.Settle, Waits = true };
            }
            Tell(() => Rebound?.Invoke(who, expires));
            BindIfItWaits();
        }

        // Behind a bind, nothing of before is answered.
        private void BindIfItWaits()
        {
            if (session != null && session.Waits && state == State.Ready && !Owes())
            {
                AskSession();
            }
        }

        private void OnAuthOk(Reader r)
        {
            DateTime expires;
            if (!greeted || known)
            {
                throw new InvalidPacketException();
            }
            Actor who = TakeWho(ref r, out _, out expires);
            Tell(() => Known?.Invoke(who, expires));
            GoOn();
        }

        private void GoOn()
        {
            known = true;
            if (session == null)
            {
                BeReady();
            }
            else
            {
                AskSession();
            }
        }

        private void BeReady()
        {
            timers.Remove("greet");
            state = State.Ready;
            readyAt = options.Now();
            Finish(connecting);
            connecting = null;
            Flush();
            Tell(() => Ready?.Invoke());
        }

        // Ping when nothing comes, and leave one that does not answer.
        private void Listen()
        {
            if (heartbeatMs == 0)
            {
                return;
            }
            long quiet = Owes() ? Math.Min(heartbeatMs, OwedQuietMs) : heartbeatMs;
            long silent = options.Now() - heardAt;
            if (silent >= 2 * quiet)
            {
                Leave("the gateway sends nothing");
                return;
            }
            if (silent >= quiet && !pinged)
            {
                pinged = true;
                Send(new Writer(PacketType.Ping).Whole());
            }
            After("listen", Math.Min(quiet, OwedQuietMs) / 2, Listen);
        }

        private void OnPing(byte[] body)
        {
            if (body.Length > PingMax)
            {
                throw new InvalidPacketException();
            }
            if (IsRead())
            {
                Send(new Writer(PacketType.Pong).Bytes(body).Whole());
            }
        }

        private void OnGoaway(uint retry, string text)
        {
            TimeSpan after = TimeSpan.FromMilliseconds(Math.Min(retry, RetryMaxMs));
            retryMs = (long)after.TotalMilliseconds;
            Tell(() => Goaway?.Invoke(after, text));
            if (state == State.Ready)
            {
                state = State.Leaving;
                After("leave", LeaveMs, () => Leave("the gateway is stopping"));
                LeaveIfDone();
            }
            else if (state == State.Greeting)
            {
                Leave("the gateway accepts no clients now");
            }
        }

        private void LeaveIfDone()
        {
            if (state == State.Leaving && !Owes())
            {
                Leave("the gateway is stopping");
            }
        }

        private void OnKick(uint code, string why)
        {
            bool isOfLogin = code >= 107 && code <= 113; // what it showed was no good
            // After these it comes again: the way there took too long, or the gateway had no memory.
            bool isPassing = code == 102 || code == 104 || code == 105 || code == 106;
            if (isOfLogin && showedGiven && !known)
            {
                given = null; // it is over: log in again
                Leave("kicked with " + code + ": " + why);
            }
            else if (isPassing || (code == KickTooLarge && Blame()))
            {
                if (session != null)
                {
                    session.Name = null; // a kick ends it
                }
                Leave("kicked with " + code + ": " + why);
            }
            else
            {
                End(new KickedException(code, why), true);
            }
        }

        // ---- what comes

        private void OnResponse(Reader r)
        {
            uint name = r.U32();
            var status = (uint)r.Number(1);
            uint retry = r.U32();
            byte[] payload = r.Rest();
            if (name == NameBind)
            {
                OnBindAnswer(status, retry, payload);
                return;
            }
            if (name == NameUnbind)
            {
                if (session != null && session.State == SessionState.Leaving)
                {
                    Unbound();
                }
                return;
            }
            LinkedListNode<Entry> node;
            if (asked.TryGetValue(name, out node) && node.Value.Ends != null) // else it has ended here
            {
                OnAnswer(node.Value, status, retry, payload);
            }
            BindIfItWaits();
            LeaveIfDone();
        }

        private void OnAnswer(Entry entry, uint status, uint retry, byte[] payload)
        {
            if (status == (uint)Status.Moving && state == State.Leaving)
            {
                // It never ran: it goes to the next gateway, in its place. Of what an earlier line sent this one cannot know.
                if ((entry.Out[Packets.Head + 4] & Flag.Again) == 0)
                {
                    entry.Sent = entry.Kept = false;
                }
                entry.Here = false;
                return;
            }
            NoteHeard(9 + payload.Length);
            Settle(entry, status, payload, retry);
        }

        private void OnPush(ulong sequence, byte[] payload)
        {
            Session s = session;
            if (s == null || s.State != SessionState.Held)
            {
                return;
            }
            if (s.Name == null && sequence == 1)
            {
                s.Pushed = 0; // the actor, begun afresh
            }
            if (sequence <= s.Pushed)
            {
                return;
            }
            ulong lost = sequence - s.Pushed - 1;
            s.Pushed = sequence;
            NoteHeard(9 + payload.Length);
            Tell(() => Pushed?.Invoke(payload, sequence, lost));
        }

        private void OnBegun(Reader r)
        {
            byte[] name = r.Bytes(SessionSize);
            r.Bytes(BegunSize - SessionSize);
            if (session != null && session.State == SessionState.Held)
            {
                session.Name = name;
                session.Pushed = 0;
                ForgetSession();
                Tell(() => Begun?.Invoke());
            }
        }

        // ---- sessions

        private void SayUnbind()
        {
            session.State = SessionState.Leaving;
            Send(new Writer(PacketType.Unbind).Number(NameUnbind, 4).Whole());
        }

        private void AskSession()
        {
            Session s = session;
            s.Waits = false;
            if (s.Name == null)
            {
                s.State = SessionState.Asked;
                Send(Packets.Asking(PacketType.Bind, NameBind, s.Id, s.Actor.Kind, s.Plain ? (byte)0 : Flag.Keep, 0, Nothing));
                return;
            }
            attempts++;
            byte[] shown = new Writer(0).Bytes(s.Name).Number(s.Pushed, 8).Number(Least(), 4).Number(attempts <= 0xffff ? attempts : 0, 2).Whole();
            var body = new byte[shown.Length - Packets.Head];
            Buffer.BlockCopy(shown, Packets.Head, body, 0, body.Length);
            s.State = SessionState.Resuming;
            Send(Packets.Asking(PacketType.Resume, NameBind, s.Id, s.Actor.Kind, 0, 0, body));
        }

        private void OnBindAnswer(uint status, uint retry, byte[] payload)
        {
            if (session == null || (session.State != SessionState.Asked && session.State != SessionState.Resuming) || timers.ContainsKey("bind"))
            {
                return; // with that timer it is a second answer: it is asked again later
            }
            if (status == (uint)Status.Ok)
            {
                OnBound(session, payload);
            }
            else if (session.State == SessionState.Resuming)
            {
                ResumeRefused(session, status, retry, payload);
            }
            else
            {
                BindRefused(session, status, retry, payload);
            }
        }

        private void OnBound(Session s, byte[] payload)
        {
            bool fresh = s.State == SessionState.Asked;
            if (fresh)
            {
                s.Name = null;
                s.Pushed = 0; // if the next one is a later one than 1, those between are lost
            }
            else
            {
                foreach (Entry entry in order)
                {
                    entry.Mark(true);
                }
            }
            if (payload.Length >= BegunSize)
            {
                s.Name = new byte[SessionSize];
                Buffer.BlockCopy(payload, 0, s.Name, 0, SessionSize);
            }
            s.State = SessionState.Held;
            s.WasHeld = true;
            if (s.Left != null)
            {
                SayUnbind();
            }
            Finish(s.Settle);
            s.Settle = null;
            Tell(() => Bound?.Invoke(fresh));
            BeReadyOrFlush();
        }

        private void BeReadyOrFlush()
        {
            if (state == State.Greeting)
            {
                BeReady();
            }
            else
            {
                Flush();
            }
        }

        private void BindAgain(long retry)
        {
            long wait = Jittered(retry > 0 ? Math.Min(retry, RetryMaxMs) : AgainMs);
            After("greet", wait + (long)options.GreetTimeout.TotalMilliseconds, () => Leave("nobody binds it in time"));
            After("bind", wait, AskSession);
        }

        private void OnRefused(Session s, uint status, byte[] payload)
        {
            var error = new RingholdException(status, payload, 0);
            session = null;
            ForgetSession();
            Finish(s.Left);
            if (s.Settle == null)
            {
                Tell(() => Refused?.Invoke(error));
            }
            else
            {
                Fail(s.Settle, error);
            }
            BeReadyOrFlush();
        }

        private static bool Begins(byte[] payload, string text) => Encoding.UTF8.GetString(payload).StartsWith(text, StringComparison.Ordinal);

        private void BindRefused(Session s, uint status, uint retry, byte[] payload)
        {
            if (status == (uint)Status.BadRequest && Begins(payload, "requests are in progress"))
            {
                BindAgain(retry); // what was asked of the actor before
            }
            else if (status == (uint)Status.BadRequest && !s.Plain)
            {
                s.Plain = true; // a gateway that keeps no sessions yet
                AskSession();
            }
            else if (status == (uint)Status.Moving || status == (uint)Status.Overloaded || status == (uint)Status.RateLimited)
            {
                BindAgain(retry);
            }
            else if (status == (uint)Status.NoOwner && s.WasHeld)
            {
                BindAgain(retry); // its nodes are being replaced
            }
            else if (status == (uint)Status.Unknown || status == (uint)Status.Timeout)
            {
                Leave("the bind got no answer"); // it may be bound: a new connection is not
            }
            else
            {
                OnRefused(s, status, payload);
            }
        }

        private void ResumeRefused(Session s, uint status, uint retry, byte[] payload)
        {
            if (status == (uint)Status.Unauthorized)
            {
                OnRefused(s, status, payload);
            }
            else if (status == (uint)Status.Rejected && Begins(payload, "REPLACED"))
            {
                End(new KickedException(1, Encoding.UTF8.GetString(payload)), true);
            }
            else if (status == (uint)Status.Rejected || status == (uint)Status.BadRequest)
            {
                s.Name = null;
                ForgetSession();
                Rewind(false);
                AskSession();
            }
            else
            {
                BindAgain(retry);
            }
        }

        private void Unbound()
        {
            Session s = session;
            session = null;
            ForgetSession();
            Fail(s.Settle, new KickedException(0, "it was unbound"));
            Finish(s.Left);
        }

        private void NoteHeard(int size)
        {
            Session s = session;
            if (s == null || s.State != SessionState.Held || s.Name == null)
            {
                return;
            }
            s.Unacked++;
            s.UnackedSize += size;
            if (s.Unacked >= AckCount || s.UnackedSize > AckSize)
            {
                Acknowledge();
            }
            else if (!timers.ContainsKey("ack"))
            {
                After("ack", AckMs, Acknowledge);
            }
        }

        private void Acknowledge()
        {
            Session s = session;
            timers.Remove("ack");
            if (s == null || s.State != SessionState.Held || s.Name == null || !IsRead())
            {
                return;
            }
            s.Unacked = s.UnackedSize = 0;
            Send(new Writer(PacketType.Ack).Number(s.Pushed, 8).Number(Least(), 4).Whole());
        }
    }
}
