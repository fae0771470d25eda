/** What the two rings between main thread and worker say: commands to the worker, events from it; README.md has them as tables. */

/** Command words are `slot * COMMANDS + command`. */
export const COMMANDS = 16;
export const ADD = 0;
/** As a fault would end it. */
export const RESET = 1;
export const CLOSE = 2;
/** From now on every piece is asked for. */
export const LIMIT = 3;
/** From now on nothing is asked for. */
export const FREE = 4;
/** What was asked for may move: of the upload, and of the download next to it. */
export const GRANT = 5;
// For slots that the worker gave out, from `FIRST_ACCEPTED_SLOT` on; see acceptor.ts.
/** Its client has proved itself: behind so many bytes it speaks in frames of several streams; see kept-sessions.ts. */
export const OPEN_SESSION = 7;
/** Connects, as the slot's request slot says. */
export const DIAL = 8;
/**
 * The main thread has a descriptor of its own; the slot is free. Of a stream in a session: it is to be relayed with the far
 * side's descriptor, which is there.
 */
export const TAKE = 9;
/** The main thread has read that it ended; the slot is free. Does not wake the worker. */
export const RELEASE = 10;
/** The slot is that of a listener. */
export const LISTEN = 11;
export const UNLISTEN = 12;
/** For no slot: another version of what is decided by is in the worker's port. */
export const TAKE_VERSION = 13;
/** The main thread knows a connection that the worker has decided; the slot stays the worker's until its end is read. */
export const JOIN = 14;
/** The slot is that of a listener: what its contexts were before is used no more when this is obeyed. */
export const RENEWED = 15;

/**
 * Words of the event ring are `slot * EVENTS + kind`: it has ended, or a direction asks for a grant (upload, and
 * download next to it).
 */
export const EVENTS = 16;
export const ENDED = 0;
export const GRANT_WANTED = 1;
/** A client has sent its request; it lies in the client's request slot. */
export const REQUESTED = 3;
/** A client that the thread can do nothing with. */
export const HANDED_OVER = 4;
export const DIALLED = 5;
/** The errno is in `asked`. */
export const NOT_DIALLED = 6;
/** Nothing comes of that listener any more. */
export const UNLISTENED = 7;
/** A connection that the worker has decided has ended, and the main thread has not joined it; see decided-slots.ts. */
export const SERVED = 8;
/** A client of a REALITY listener goes to the main thread as the message says; see `LeftClient`. The main thread releases the slot. */
export const LEFT = 9;
/** A client of a TLS listener goes to the main thread with the objects in its numbers; see tls-handshake.ts. The main thread releases the slot. */
export const TLS_ACCEPTED = 11;
