// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Security;
using System.Net.Sockets;
using System.Net.WebSockets;
using System.Threading;
using System.Threading.Tasks;

namespace Ringhold
{
    /// <summary>How bytes get to a gateway. It tells the client what happens by Client.Happens().</summary>
    internal interface ILine
    {
        int Unread { get; } // bytes that wait to go out
        void Send(byte[] data);
        void Close();
    }

    internal static class Lines
    {
        internal static Uri Where(string gateway)
        {
            Uri url;
            string text = gateway.Contains("://") ? gateway : "tcp://" + gateway;
            bool isWeb = text.StartsWith("ws://", StringComparison.Ordinal) || text.StartsWith("wss://", StringComparison.Ordinal);
            bool isPlain = text.StartsWith("tcp://", StringComparison.Ordinal) || text.StartsWith("tls://", StringComparison.Ordinal);
            if (!Uri.TryCreate(text, UriKind.Absolute, out url) || url.Host == "" || !(isWeb || (isPlain && url.Port > 0)))
            {
                throw new ArgumentException(gateway + ": a gateway is ws://, wss://, tcp://HOST:PORT, tls://HOST:PORT or HOST:PORT");
            }
            return url;
        }

        internal static ILine Dial(string gateway, Client client)
        {
            Uri url = Where(gateway);
            Line line = url.Scheme == "ws" || url.Scheme == "wss" ? (Line)new WebSocketLine(client, url) : new TcpLine(client, url);
            line.Begin();
            return line;
        }
    }

    /// <summary>
    /// Reads in one task and writes in another. One piece that was read waits for the client at a time, so a gateway that floods a
    /// game that does nothing fills no memory.
    /// </summary>
    internal abstract class Line : ILine
    {
        protected const int PieceSize = 64 * 1024;
        protected readonly CancellationTokenSource Over = new CancellationTokenSource();
        private readonly Client client;
        private readonly Queue<byte[]> queue = new Queue<byte[]>();
        private int unread;
        private bool opened, writing;

        protected Line(Client client)
        {
            this.client = client;
        }

        public int Unread => Volatile.Read(ref unread);

        protected RemoteCertificateValidationCallback CheckCertificate => client.CheckCertificate;

        internal void Begin()
        {
            Task.Run(Run);
        }

        protected abstract Task Open();
        protected abstract Task<int> Read(byte[] into); // 0: it is over
        protected abstract Task Write(byte[] data);
        protected abstract void Drop();
        protected virtual bool IsTooLarge => false;
        protected virtual string Why => "the gateway closed the connection";

        private async Task Run()
        {
            string why;
            try
            {
                await Open();
                client.Happens(() => client.OnOpened(this));
                lock (queue)
                {
                    opened = true;
                }
                Pump();
                var piece = new byte[PieceSize];
                for (;;)
                {
                    int size = await Read(piece);
                    if (size == 0)
                    {
                        break;
                    }
                    var taken = new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
                    client.Happens(() =>
                    {
                        try
                        {
                            client.OnBytes(this, piece, size);
                        }
                        finally
                        {
                            taken.TrySetResult(true);
                        }
                    });
                    await taken.Task;
                }
                why = Why;
            }
            catch (Exception e)
            {
                why = e.InnerException == null ? e.Message : e.Message + ": " + e.InnerException.Message;
            }
            bool tooLarge = IsTooLarge;
            Drop();
            client.Happens(() => client.OnClosed(this, why, tooLarge));
        }

        public void Send(byte[] data)
        {
            lock (queue)
            {
                queue.Enqueue(data);
                Interlocked.Add(ref unread, data.Length);
            }
            Pump();
        }

        private void Pump()
        {
            lock (queue)
            {
                if (!opened || writing || queue.Count == 0)
                {
                    return;
                }
                writing = true;
            }
            Task.Run(WriteAll);
        }

        private async Task WriteAll()
        {
            try
            {
                for (;;)
                {
                    byte[] next;
                    lock (queue)
                    {
                        if (queue.Count == 0 || Over.IsCancellationRequested)
                        {
                            writing = false;
                            return;
                        }
                        next = queue.Dequeue();
                    }
                    await Write(next);
                    Interlocked.Add(ref unread, -next.Length);
                }
            }
            catch (Exception)
            {
                // It is over; who reads finds out why. `writing` stays: nothing more is written.
            }
        }

        public void Close()
        {
            Over.Cancel();
            Drop();
        }
    }

    internal sealed class TcpLine : Line
    {
        private readonly Uri url;
        private readonly TcpClient socket = new TcpClient { NoDelay = true };
        private Stream stream;

        internal TcpLine(Client client, Uri url)
            : base(client)
        {
            this.url = url;
        }

        protected override async Task Open()
        {
            await socket.ConnectAsync(url.DnsSafeHost, url.Port);
            stream = socket.GetStream();
            if (url.Scheme == "tls")
            {
                var secure = new SslStream(stream, false, CheckCertificate);
                await secure.AuthenticateAsClientAsync(url.DnsSafeHost);
                stream = secure;
            }
        }

        protected override Task<int> Read(byte[] into) => stream.ReadAsync(into, 0, into.Length);
        protected override Task Write(byte[] data) => stream.WriteAsync(data, 0, data.Length);
        protected override void Drop() => socket.Close();
    }

    internal sealed class WebSocketLine : Line
    {
        private readonly Uri url;
        private readonly ClientWebSocket socket = new ClientWebSocket();
        private readonly byte[] next = new byte[PieceSize / 4]; // what `receives` fills
        private Task<WebSocketReceiveResult> receives;
        private bool over, tooLarge, text;

        internal WebSocketLine(Client client, Uri url)
            : base(client)
        {
            this.url = url;
        }

        protected override Task Open() => socket.ConnectAsync(url, Over.Token);

        // All that is here already, up to a piece: a message for each push would cost the game's thread a turn each.
        protected override async Task<int> Read(byte[] into)
        {
            int size = 0;
            while (!over && size + next.Length <= into.Length)
            {
                receives = receives ?? socket.ReceiveAsync(new ArraySegment<byte>(next), Over.Token);
                if (size > 0 && receives.Status != TaskStatus.RanToCompletion)
                {
                    break; // nothing more is here; if it failed, that comes behind what is
                }
                WebSocketReceiveResult got = await receives;
                receives = null;
                text = got.MessageType == WebSocketMessageType.Text;
                tooLarge = got.CloseStatus == WebSocketCloseStatus.MessageTooBig;
                over = got.MessageType != WebSocketMessageType.Binary;
                Buffer.BlockCopy(next, 0, into, size, over ? 0 : got.Count);
                size += over ? 0 : got.Count;
            }
            return size;
        }

        protected override bool IsTooLarge => tooLarge;
        protected override string Why => text ? "the gateway sent text" : base.Why;

        // One packet a message.
        protected override Task Write(byte[] data) =>
            socket.SendAsync(new ArraySegment<byte>(data), WebSocketMessageType.Binary, true, Over.Token);

        protected override void Drop()
        {
            Over.Cancel();
            socket.Dispose();
        }
    }
}
