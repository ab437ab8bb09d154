//! The server on a real socket: bounds, slow clients, clients that vanish, and stopping.

mod connections;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::fixture::{OneToken, Recorder, registry, settings};
use crate::http::{HttpError, HttpServer, HttpSettings, Stop, Stopper};

const PREPARE: &str = "POST /account/a-1/prepare HTTP/1.1\r\nHost: x\r\n\
                       Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

struct Running {
    address: SocketAddr,
    stopper: Stopper,
    server: actix_web::rt::task::JoinHandle<io::Result<()>>,
}

fn start(recorder: &Arc<Recorder>, settings: HttpSettings) -> Running {
    let bound = HttpServer::bind(settings, registry(), recorder.clone(), Arc::new(OneToken));
    let bound = bound.unwrap();
    let address = bound.addresses()[0];
    let stopper = bound.stopper();
    Running {
        address,
        stopper,
        server: actix_web::rt::spawn(bound.run()),
    }
}

impl Running {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn stop(self) {
        self.stopper.stop(Stop::AtOnce).await;
        self.server.await.unwrap().unwrap();
    }
}

/// Everything until the server closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    // A connection that is cut with unread bytes may end in a reset.
    let _ = timeout(Duration::from_secs(20), read)
        .await
        .expect("the server closes in time");
    String::from_utf8(bytes).unwrap()
}

/// Waits until the server has closed, whatever it says before.
async fn closed(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let _ = timeout(Duration::from_secs(20), read)
        .await
        .expect("the server closes in time");
}

/// One answer with a body of known length.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let read = timeout(Duration::from_secs(20), stream.read(&mut buffer));
        let count = read.await.expect("an answer comes in time").unwrap();
        assert_ne!(count, 0, "the server closed: {text}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if length.is_some_and(|length| length.parse() == Ok(body.len())) {
            return text;
        }
    }
}

#[actix_web::test]
async fn one_connection_serves_one_request_after_another() {
    let recorder = Recorder::new();
    let running = start(&recorder, settings());
    let mut stream = running.connect().await;
    for _ in 0..3 {
        stream.write_all(PREPARE.as_bytes()).await.unwrap();
        assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    }
    assert_eq!(recorder.submissions.lock().len(), 3);
    running.stop().await;
}

#[actix_web::test]
async fn http_2_is_served_on_the_same_port() {
    let running = start(&Recorder::new(), settings());
    let mut stream = running.connect().await;
    let path = b"/health/live";
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // An empty SETTINGS frame, then HEADERS of stream 1: GET, http, the path and the authority.
    request.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let mut block = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    block.extend(path);
    block.extend([0x01, 1, b'x']);
    request.extend([0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    request.extend(block);
    stream.write_all(&request).await.unwrap();
    let status = timeout(Duration::from_secs(20), async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.unwrap();
            let length = usize::from(head[1]) << 8 | usize::from(head[2]);
            let mut frame = vec![0; length];
            stream.read_exact(&mut frame).await.unwrap();
            if head[3] == 1 {
                // A table size update may come before the status, which is indexed: 8 is 200.
                return frame.into_iter().find(|byte| byte & 0x80 != 0);
            }
        }
    });
    assert_eq!(status.await.unwrap(), Some(0x88));
    running.stop().await;
}

#[actix_web::test]
async fn r5_a_large_body_is_refused_before_it_has_come() {
    let recorder = Recorder::new();
    let running = start(&recorder, settings());
    let head =
        "POST /account/a-1/prepare HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    let declared = format!("{head}Content-Length: 1000000000\r\n\r\n");
    let chunk = "x".repeat(1001);
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{chunk}\r\n",
        chunk.len()
    );
    for request in [declared, chunked] {
        let mut stream = running.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let text = answer(&mut stream).await;
        assert!(text.starts_with("HTTP/1.1 413 "), "{text}");
        assert!(
            text.contains("wow-error-code: wow.command.body-too-large\r\n"),
            "{text}"
        );
    }
    assert!(recorder.submissions.lock().is_empty());
    running.stop().await;
}

#[actix_web::test]
async fn a_client_that_is_slow_with_head_or_body_is_not_waited_for() {
    let recorder = Recorder::new();
    let short = Duration::from_millis(100);
    let settings = HttpSettings {
        head_timeout: short,
        body_timeout: short,
        ..settings()
    };
    let running = start(&recorder, settings);
    let mut stream = running.connect().await;
    stream.write_all(b"POST /account/a-1/prep").await.unwrap();
    let text = rest(&mut stream).await;
    assert!(
        text.is_empty() || text.starts_with("HTTP/1.1 408 "),
        "{text}"
    );

    let mut stream = running.connect().await;
    let (head, _) = PREPARE.split_at(PREPARE.len() - 1);
    stream.write_all(head.as_bytes()).await.unwrap();
    let text = answer(&mut stream).await;
    assert!(
        text.starts_with("HTTP/1.1 408 ") && text.contains("wow.http.body-timeout"),
        "{text}"
    );
    assert!(recorder.submissions.lock().is_empty());
    running.stop().await;
}

#[actix_web::test]
async fn an_idle_connection_is_closed() {
    let settings = HttpSettings {
        keep_alive: Duration::from_millis(100),
        ..settings()
    };
    let running = start(&Recorder::new(), settings);
    let mut stream = running.connect().await;
    stream.write_all(PREPARE.as_bytes()).await.unwrap();
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    running.stop().await;
}

#[actix_web::test]
async fn r66_a_client_that_vanishes_ends_its_wait() {
    let recorder = Recorder::new();
    recorder.permits.forget_permits(1000);
    let running = start(&recorder, settings());
    let mut stream = running.connect().await;
    stream.write_all(PREPARE.as_bytes()).await.unwrap();
    recorder.until_waiting(1).await;
    drop(stream);
    recorder.until_waiting(0).await;
    assert_eq!(
        recorder.submissions.lock().len(),
        1,
        "what was submitted stays submitted"
    );
    running.stop().await;
}

#[actix_web::test]
async fn r34_a_graceful_stop_finishes_answers_and_closes_idle_connections() {
    let recorder = Recorder::new();
    recorder.permits.forget_permits(1000);
    let running = start(&recorder, settings());
    let mut idle = running.connect().await;
    idle.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    answer(&mut idle).await;
    let mut busy = running.connect().await;
    busy.write_all(PREPARE.as_bytes()).await.unwrap();
    recorder.until_waiting(1).await;

    let stopper = running.stopper.clone();
    let stopping = actix_web::rt::spawn(async move { stopper.stop(Stop::Graceful).await });
    assert_eq!(
        rest(&mut idle).await,
        "",
        "the idle one is closed while the other is served"
    );
    recorder.permits.add_permits(1);
    let text = rest(&mut busy).await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("\"succeeded\":true"));
    timeout(Duration::from_secs(20), stopping)
        .await
        .expect("the stop ends")
        .unwrap();
    running.server.await.unwrap().unwrap();
    assert!(TcpStream::connect(running.address).await.is_err());
}

#[actix_web::test]
async fn r34_a_node_that_takes_no_commands_sends_its_clients_elsewhere() {
    let recorder = Recorder::new();
    *recorder.accepting.lock() = false;
    *recorder.answer.lock() = Err(wow_kernel::error::CommandError::ShuttingDown);
    let running = start(&recorder, settings());
    let mut stream = running.connect().await;
    stream.write_all(PREPARE.as_bytes()).await.unwrap();
    let text = rest(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    assert!(
        text.contains("connection: close\r\n") && text.contains("retry-after: 1\r\n"),
        "{text}"
    );
    running.stop().await;
}

#[actix_web::test]
async fn head_answers_like_get_without_the_body() {
    let running = start(&Recorder::new(), settings());
    let mut stream = running.connect().await;
    let request = b"HEAD /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let text = rest(&mut stream).await;
    assert!(
        text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"),
        "{text}"
    );
    running.stop().await;
}

#[actix_web::test]
async fn a_port_in_use_is_known_before_anything_is_served() {
    let running = start(&Recorder::new(), settings());
    let taken = HttpSettings {
        bind: running.address,
        ..settings()
    };
    let second = HttpServer::bind(taken, registry(), Recorder::new(), Arc::new(OneToken));
    match second.err().unwrap() {
        HttpError::Bind { address, .. } => assert_eq!(address, running.address),
        other => panic!("{other}"),
    }
    running.stop().await;
}
