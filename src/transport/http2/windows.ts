/**
 * Flow control. The default of 64 KiB bounds a stream to one window a round trip. In workers a peer can make us hold the
 * connection's window at most. `node:http2` grants that one anew whatever becomes of the bytes: there it is a stream's window
 * for each open stream.
 */
export const STREAM_WINDOW_BYTES = 4 * 1024 * 1024;
export const CONNECTION_WINDOW_BYTES = 8 * 1024 * 1024;
/** Further streams of one connection are refused by the protocol itself. */
export const MAX_STREAMS = 1024;
/** Of one request; a longer one is refused. */
export const MAX_HEAD_BYTES = 16 * 1024;
