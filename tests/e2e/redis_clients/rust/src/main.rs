//! Drives redis-rs as ../../README.md says: its plain connections, and its connection manager.
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Connection, RedisResult};
use std::collections::BTreeSet;
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;

/// What each way to connect does.
trait Line: Send {
    fn pipe(&mut self, pipe: &redis::Pipeline) -> RedisResult<redis::Value>;

    fn ask<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> RedisResult<T>
    where
        Self: Sized,
    {
        let mut pipe = redis::pipe();
        let cmd = pipe.cmd(words[0]);
        for word in &words[1..] {
            cmd.arg(*word);
        }
        let (value,): (T,) = redis::from_redis_value(self.pipe(&pipe)?)?;
        Ok(value)
    }
}

/// Knows no reconnection: a thread makes another when it is lost, as with hiredis.
struct Plain {
    client: Client,
    line: Option<Connection>,
}

impl Line for Plain {
    fn pipe(&mut self, pipe: &redis::Pipeline) -> RedisResult<redis::Value> {
        if self.line.as_ref().is_none_or(|l| !redis::ConnectionLike::is_open(l)) {
            self.line = Some(self.client.get_connection()?);
        }
        let answer = pipe.query(self.line.as_mut().unwrap());
        if answer.as_ref().is_err_and(|e: &redis::RedisError| e.is_io_error()) {
            self.line = None;
        }
        answer
    }
}

#[derive(Clone)]
struct Managed {
    run: Arc<Runtime>,
    line: ConnectionManager,
}

impl Line for Managed {
    fn pipe(&mut self, pipe: &redis::Pipeline) -> RedisResult<redis::Value> {
        self.run.block_on(pipe.query_async(&mut self.line))
    }
}

#[derive(Default)]
struct Sums {
    answered: u64,
    refused: u64,
    unknown: u64,
    texts: BTreeSet<String>,
}

fn did_not_run(text: &str) -> bool {
    ["MOVING", "OVERLOADED", "NOKIND", "QUARANTINED"].iter().any(|w| text.contains(w))
}

struct Counting {
    over: Arc<AtomicBool>,
    sums: Arc<Mutex<Sums>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Counting {
    fn new<L: Line + 'static>(make: &dyn Fn() -> RedisResult<L>, key: &str, workers: usize) -> RedisResult<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let sums = Arc::new(Mutex::new(Sums::default()));
        let mut threads = Vec::new();
        for _ in 0..workers {
            let (mut line, over, sums, key) = (make()?, over.clone(), sums.clone(), key.to_string());
            threads.push(std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let answer: RedisResult<i64> = line.ask(&["INCR", &key]);
                    let mut s = sums.lock().unwrap();
                    match answer {
                        Ok(_) => s.answered += 1,
                        Err(e) => {
                            let text = e.to_string();
                            if did_not_run(&text) {
                                s.refused += 1;
                            } else {
                                s.unknown += 1;
                            }
                            if s.texts.len() < 4 {
                                s.texts.insert(text.chars().take(80).collect());
                            }
                        }
                    }
                    drop(s);
                    std::thread::sleep(Duration::from_millis(2));
                }
            }));
        }
        Ok(Counting { over, sums, threads })
    }

    fn stop(self) -> String {
        self.over.store(true, Ordering::Relaxed);
        for t in self.threads {
            t.join().unwrap();
        }
        let s = self.sums.lock().unwrap();
        let texts: Vec<&str> = s.texts.iter().map(String::as_str).collect();
        format!("answered={} refused={} unknown={} {}", s.answered, s.refused, s.unknown, texts.join(" | "))
    }
}

fn talk<L: Line + 'static>(fresh: &dyn Fn() -> RedisResult<L>, again: &dyn Fn(&L) -> RedisResult<L>) {
    let mut one: Option<L> = None;
    let mut counting: Option<Counting> = None;

    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let number: usize = words.get(2).and_then(|w| w.parse().ok()).unwrap_or(0);
        let answer: RedisResult<String> = (|| match words[0] {
            "start" => {
                let mut l = fresh()?;
                let _: () = l.ask(&["SET", "start", "1"])?;
                let value: i64 = l.ask(&["GET", "start"])?;
                assert_eq!(value, 1);
                let value: i64 = l.ask(&["INCR", "start"])?;
                one = Some(l);
                Ok(value.to_string())
            }
            "pipeline" => {
                let mut pipe = redis::pipe();
                for _ in 0..number {
                    pipe.cmd("INCR").arg(words[1]);
                }
                let values: Vec<i64> = redis::from_redis_value(one.as_mut().unwrap().pipe(&pipe)?)?;
                Ok(values[number - 1].to_string())
            }
            "churn" => {
                let mut last = 0;
                for _ in 0..number {
                    last = fresh()?.ask(&["INCR", words[1]])?;
                }
                Ok(last.to_string())
            }
            "multi" => {
                let mut pipe = redis::pipe();
                pipe.atomic().cmd("INCR").arg(words[1]).cmd("INCR").arg(words[1]);
                one.as_mut().unwrap().pipe(&pipe)?;
                Ok("done".into())
            }
            "count" => {
                let l = one.as_ref().unwrap();
                counting = Some(Counting::new(&|| again(l), words[1], number)?);
                Ok("counting".into())
            }
            _ => Ok(counting.take().unwrap().stop()),
        })();
        match answer {
            Ok(text) => println!("ok {text}"),
            Err(e) => println!("error {}", e.to_string().replace(['\r', '\n'], " ")),
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let recommended = args[2] == "recommended";
    let client = Client::open(format!("redis://{}:{}/", args[3], args[4])).unwrap();

    if args[1] == "redis-rs" {
        let fresh = || {
            let line = client.get_connection()?;
            Ok(Plain { client: client.clone(), line: Some(line) })
        };
        talk(&fresh, &|_| fresh());
        return;
    }
    let run = Arc::new(Runtime::new().unwrap());
    let fresh = || {
        let mut config = ConnectionManagerConfig::new();
        if recommended {
            config = config.set_response_timeout(Some(Duration::from_secs(15)));
        }
        let line = run.block_on(ConnectionManager::new_with_config(client.clone(), config))?;
        Ok(Managed { run: run.clone(), line })
    };
    talk(&fresh, &|l: &Managed| Ok(l.clone()));
}
