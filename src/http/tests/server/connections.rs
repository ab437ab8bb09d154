//! How long a connection may have nothing to do, and what counts as something.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::{PREPARE, answer, closed, rest, start};
use crate::http::fixture::{Recorder, settings};
use crate::http::{HttpSettings, Stop};

#[actix_web::test]
async fn a_client_that_says_nothing_gives_its_place_back() {
    let settings = HttpSettings {
        head_timeout: Duration::from_millis(100),
        connections_max: 2,
        ..settings()
    };
    let running = start(&Recorder::new(), settings);
    // The first bytes of HTTP/2, whole and in part, are not more than nothing.
    for start in ["", "PRI", "PRI * HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM"] {
        let mut silent = [running.connect().await, running.connect().await];
        for stream in &mut silent {
            stream.write_all(start.as_bytes()).await.unwrap();
        }
        // They take every place, and yet this one is served.
        let mut stream = running.connect().await;
        stream.write_all(PREPARE.as_bytes()).await.unwrap();
        let text = answer(&mut stream).await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{start}: {text}");
        for stream in &mut silent {
            closed(stream).await;
        }
    }
    running.stop().await;
}

#[actix_web::test]
async fn the_head_of_a_later_request_is_not_waited_for_either() {
    let settings = HttpSettings {
        head_timeout: Duration::from_millis(100),
        ..settings()
    };
    let running = start(&Recorder::new(), settings);
    for begun in ["P", "POST /account/a-1/prepare HTTP/1.1\r\nHost: "] {
        let mut stream = running.connect().await;
        stream.write_all(PREPARE.as_bytes()).await.unwrap();
        answer(&mut stream).await;
        stream.write_all(begun.as_bytes()).await.unwrap();
        closed(&mut stream).await;
    }
    running.stop().await;
}

#[actix_web::test]
async fn a_request_that_is_under_way_is_not_idle() {
    let recorder = Recorder::new();
    recorder.permits.forget_permits(1000);
    let settings = HttpSettings {
        head_timeout: Duration::from_millis(20),
        keep_alive: Duration::from_millis(20),
        ..settings()
    };
    let running = start(&recorder, settings);
    let mut stream = running.connect().await;
    stream.write_all(PREPARE.as_bytes()).await.unwrap();
    recorder.until_waiting(1).await;
    // A connection that says nothing is closed meanwhile: its time has passed three times over.
    for _ in 0..3 {
        closed(&mut running.connect().await).await;
    }
    recorder.permits.add_permits(1);
    let text = rest(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    running.stop().await;
}

#[actix_web::test]
async fn r64_an_answer_that_streams_is_under_way_to_its_end() {
    let recorder = Recorder::new();
    let (signals, receiver) = tokio::sync::mpsc::channel(1);
    *recorder.signals.lock() = Some(receiver);
    let settings = HttpSettings {
        head_timeout: Duration::from_millis(20),
        keep_alive: Duration::from_millis(20),
        ..settings()
    };
    let running = start(&recorder, settings);
    let mut stream = running.connect().await;
    let streaming = PREPARE.replace("Host: x", "Host: x\r\nAccept: text/event-stream");
    stream.write_all(streaming.as_bytes()).await.unwrap();
    // The head of the answer has come, so the request is past its handler.
    let mut first = [0; 1];
    let read = timeout(Duration::from_secs(20), stream.read_exact(&mut first));
    read.await.expect("it begins to answer").unwrap();
    for _ in 0..3 {
        closed(&mut running.connect().await).await;
    }
    let last = Err(wow_kernel::error::CommandError::NotFound);
    signals.send(last).await.unwrap();
    drop(signals);
    let text = rest(&mut stream).await;
    assert!(text.contains("wow.aggregate.not-found"), "{text}");
    running.stop().await;
}

#[actix_web::test]
async fn a_connection_of_http_2_that_only_answers_pings_is_closed() {
    let settings = HttpSettings {
        keep_alive: Duration::from_millis(100),
        ..settings()
    };
    let running = start(&Recorder::new(), settings);
    let mut stream = running.connect().await;
    let mut preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    preface.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    stream.write_all(&preface).await.unwrap();
    let answering = async {
        loop {
            let mut head = [0; 9];
            if stream.read_exact(&mut head).await.is_err() {
                return;
            }
            let mut frame = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            if stream.read_exact(&mut frame).await.is_err() {
                return;
            }
            // A ping that isn't an answer itself is answered with what it holds.
            if head[3] == 6 && head[4] == 0 {
                head[4] = 1;
                let answered = [&head[..], &frame].concat();
                if stream.write_all(&answered).await.is_err() {
                    return;
                }
            }
        }
    };
    let closed = timeout(Duration::from_secs(20), answering).await;
    closed.expect("it is closed in time");
    running.stop().await;
}

#[actix_web::test]
async fn r34_a_graceful_stop_waits_for_nobody_who_says_nothing() {
    let recorder = Recorder::new();
    let running = start(&recorder, settings());
    let mut silent = running.connect().await;
    // Served after it, so the silent one has been accepted.
    let mut stream = running.connect().await;
    stream.write_all(PREPARE.as_bytes()).await.unwrap();
    answer(&mut stream).await;
    running.stopper.stop(Stop::Graceful).await;
    assert_eq!(rest(&mut silent).await, "");
    running.server.await.unwrap().unwrap();
}
