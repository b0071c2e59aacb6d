// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ringhold
{
    /// <summary>An entity of the game: its kind, and an id of 1 to 255 bytes in UTF-8.</summary>
    public struct Actor : IEquatable<Actor>
    {
        public Actor(ushort kind, string id)
        {
            Kind = kind;
            Id = id;
        }

        public ushort Kind { get; }
        public string Id { get; }

        public bool Equals(Actor other) => Kind == other.Kind && Id == other.Id;
        public override bool Equals(object other) => other is Actor && Equals((Actor)other);
        public override int GetHashCode() => (Id ?? "").GetHashCode() ^ Kind;
        public override string ToString() => Kind + "/" + Id;
    }

    /// <summary>How a request ended. One that is not here is told as Unknown.</summary>
    public enum Status
    {
        Ok,
        ActorFailed,
        Unknown,
        Timeout,
        Moving,
        Overloaded,
        NoOwner,
        Quarantined,
        Rejected,
        BadRequest,
        Unauthorized,
        RateLimited,
    }

    /// <summary>A request that has no good answer.</summary>
    public sealed class RingholdException : Exception
    {
        internal RingholdException(uint status, byte[] payload, long retryMs)
            : base(Name(status) + (payload.Length > 0 ? ": " + Encoding.UTF8.GetString(payload) : ""))
        {
            Status = status <= (uint)Status.RateLimited ? (Status)status : Status.Unknown;
            Payload = payload;
            RetryAfter = TimeSpan.FromMilliseconds(retryMs);
        }

        public Status Status { get; }

        /// <summary>What the gateway or the actor says about it.</summary>
        public byte[] Payload { get; }

        /// <summary>When asking again may do better; zero: now or never.</summary>
        public TimeSpan RetryAfter { get; }

        /// <summary>False: it did not run and never will.</summary>
        public bool MayHaveRun => Status == Status.ActorFailed || Status == Status.Unknown || Status == Status.Timeout;

        private static string Name(uint status) =>
            status <= (uint)Status.RateLimited ? ((Status)status).ToString() : "status " + status;
    }

    /// <summary>The gateway sent the client away for good (docs/protocol-client.md has the codes), or it was closed (0).</summary>
    public sealed class KickedException : Exception
    {
        internal KickedException(uint code, string why)
            : base(code == 0 ? why : "kicked with " + code + ": " + why)
        {
            Code = code;
        }

        public uint Code { get; }
    }

    /// <summary>What a client is made with; what is left as it is has sane values.</summary>
    public sealed class Options
    {
        /// <summary>Shown to gateways that ask: a token, or what the game's login takes, up to 1024 bytes.</summary>
        public byte[] Token = new byte[0];

        /// <summary>Requests and notifies without an answer at a time, and the bytes of all these.</summary>
        public int RequestsMax = 1024, OutMax = 1024 * 1024;

        /// <summary>Bytes of the largest packet that is taken.</summary>
        public int PacketMax = 1024 * 1024 + 64;

        /// <summary>After which a request ends, answered or not.</summary>
        public TimeSpan AnswerTimeout = TimeSpan.FromSeconds(15);

        /// <summary>For a connection to be made and greeted.</summary>
        public TimeSpan GreetTimeout = TimeSpan.FromSeconds(10);

        /// <summary>Of the first try after a failure, then doubled, up to the other.</summary>
        public TimeSpan BackOffMin = TimeSpan.FromMilliseconds(200), BackOffMax = TimeSpan.FromSeconds(10);

        /// <summary>Checks a tls:// gateway's certificate; null: the system does.</summary>
        public System.Net.Security.RemoteCertificateValidationCallback CheckCertificate = null;

        internal Func<double> Draw = new Random().NextDouble;
        internal Func<long> Now = () => System.Diagnostics.Stopwatch.GetTimestamp() * 1000 / System.Diagnostics.Stopwatch.Frequency;
        internal Func<string, Client, ILine> Dial;
    }

    /// <summary>
    /// A client at the gateways of a Ringhold fleet, for one thread: that of the game, which calls Update() in each frame. All
    /// events are raised, and all tasks end, inside of Update() (or Dispose()), one after the other; so what follows an await runs
    /// there as well. What a handler throws, Update() throws when it is done.
    /// </summary>
    public sealed partial class Client : IDisposable
    {
        private const int PiecesMax = 32; // in one Update()
        private readonly List<string> gateways;
        private readonly Options options;
        private readonly ConcurrentQueue<Action> happened = new ConcurrentQueue<Action>();
        private readonly SemaphoreSlim something = new SemaphoreSlim(0);
        private readonly int thread = Thread.CurrentThread.ManagedThreadId;

        /// <summary>A push came: payload, sequence, how many before it are lost.</summary>
        public event Action<byte[], ulong, ulong> Pushed;

        /// <summary>The gateway says who we are, and until when: in each connection that asks for a token.</summary>
        public event Action<Actor, DateTime> Known;

        /// <summary>Our actor lets us go on as another one, and Bound follows. Ask that one from here on.</summary>
        public event Action<Actor, DateTime> Rebound;

        /// <summary>Ready to ask: also each time that it is back.</summary>
        public event Action Ready;

        /// <summary>Bound. True: the actor begins a session with us; else ours goes on unharmed.</summary>
        public event Action<bool> Bound;

        /// <summary>The actor was lost and begun afresh: what it knew of us is gone.</summary>
        public event Action Begun;

        /// <summary>The line is gone, and why; it dials again.</summary>
        public event Action<string> Lost;

        /// <summary>The gateway stops, and it goes to another one after this time.</summary>
        public event Action<TimeSpan, string> Goaway;

        /// <summary>Sent away for good.</summary>
        public event Action<KickedException> Kicked;

        /// <summary>The bind of an earlier connection was refused in this one.</summary>
        public event Action<RingholdException> Refused;

        /// <summary>
        /// Gateways are ws://, wss:// (one packet a message), tcp://HOST:PORT, tls://HOST:PORT or HOST:PORT, divided by commas,
        /// and tried in turn from one that is drawn. It does nothing until Connect().
        /// </summary>
        public Client(string gateways, Options options = null)
        {
            this.options = options ?? new Options();
            this.gateways = new List<string>();
            foreach (string gateway in (gateways ?? "").Split(','))
            {
                Lines.Where(gateway.Trim()); // throws ArgumentException
                this.gateways.Add(gateway.Trim());
            }
            turn = (int)(this.options.Draw() * this.gateways.Count);
            token = this.options.Token ?? new byte[0];
        }

        /// <summary>The gateway that it is at, or goes to.</summary>
        public string Gateway => gateways[turn % gateways.Count];

        /// <summary>True if requests go out at once.</summary>
        public bool IsReady => state == State.Ready;

        /// <summary>Requests and notifies without an answer.</summary>
        public int Pending => asked.Count;

        /// <summary>Go and stay connected. Ends at the first gateway that takes us; KickedException: none ever will.</summary>
        public Task Connect()
        {
            Here();
            return ConnectNow();
        }

        /// <summary>
        /// Ask an actor. Requests to one actor run in the order of these calls. RingholdException: it has no good answer.
        /// idempotent: it may run more than once, and is sent again after anything. deadline: for the gateway to answer in.
        /// </summary>
        public Task<byte[]> Request(Actor actor, byte[] payload, bool idempotent = false, TimeSpan? deadline = null)
        {
            Here();
            var ends = new TaskCompletionSource<byte[]>();
            Exception wrong = Ask(PacketType.Request, actor, payload, idempotent, deadline, ends);
            if (wrong != null)
            {
                ends.SetException(wrong);
            }
            return ends.Task;
        }

        /// <summary>Tell an actor something, in order with its requests; nobody says what became of it.</summary>
        public void Notify(Actor actor, byte[] payload, bool idempotent = false, TimeSpan? deadline = null)
        {
            Here();
            Exception wrong = Ask(PacketType.Notify, actor, payload, idempotent, deadline, null);
            if (wrong != null)
            {
                throw wrong;
            }
        }

        /// <summary>Be bound to this actor, in this connection and the next ones. Best called before Connect().</summary>
        public Task Bind(Actor actor)
        {
            Here();
            if (session != null)
            {
                throw new InvalidOperationException("it is bound already");
            }
            session = new Session { Actor = actor, Id = IdOf(actor), Settle = new TaskCompletionSource<bool>() };
            Task settles = session.Settle.Task;
            if (state == State.Ready)
            {
                AskSession();
            }
            return settles;
        }

        /// <summary>End that.</summary>
        public Task Unbind()
        {
            Here();
            if (session == null || session.Left != null)
            {
                throw new InvalidOperationException("it is not bound");
            }
            session.Left = new TaskCompletionSource<bool>();
            Task left = session.Left.Task;
            if (session.State == SessionState.Held)
            {
                SayUnbind();
            }
            else if (session.State == SessionState.Wanted)
            {
                Unbound();
                TellAll();
            } // else when its answer is here
            return left;
        }

        /// <summary>Show this one from the next connection on.</summary>
        public void SetToken(byte[] token)
        {
            Here();
            this.token = token ?? new byte[0];
            given = null;
        }

        /// <summary>Do what is to be done now, and raise what happened. A game calls it in each frame.</summary>
        public void Update()
        {
            Here();
            Action next;
            // A gateway that floods must not hold up the game's frame: what is left waits for the next one.
            for (int i = 0; i < PiecesMax && happened.TryDequeue(out next); i++)
            {
                next();
                TellAll();
            }
            Ring();
            TellAll();
            ExceptionDispatchInfo first = thrown;
            thrown = null;
            first?.Throw();
        }

        /// <summary>Without frames: wait until something happens or is due, for so long at most, and Update().</summary>
        public void Update(TimeSpan atMost)
        {
            Here();
            long due = Due();
            double wait = atMost.TotalMilliseconds;
            if (due != long.MaxValue)
            {
                wait = Math.Min(wait, Math.Max(0, due - options.Now()));
            }
            something.Wait((int)Math.Min(wait, int.MaxValue));
            Update();
        }

        /// <summary>Hang up. What has no answer ends as Unknown (it was sent) or Moving (it never ran).</summary>
        public void Dispose()
        {
            Here();
            if (state != State.Ended)
            {
                End(new KickedException(0, "the client was closed"), false);
                TellAll();
            }
        }

        /// <summary>A line tells from its own thread what happened: it waits for the next Update().</summary>
        internal void Happens(Action what)
        {
            happened.Enqueue(what);
            if (something.CurrentCount == 0)
            {
                something.Release();
            }
        }

        private void Here()
        {
            if (Thread.CurrentThread.ManagedThreadId != thread)
            {
                throw new InvalidOperationException("a client is used by the thread that made it");
            }
        }
    }
}
