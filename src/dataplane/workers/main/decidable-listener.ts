/** What workers need to know of a listener to decide on its connections. */
import type { Endpoint } from "#core/session.ts";
import type { LetIn, WrittenUsers } from "#core/written-users.ts";
import type { ListenerContext } from "#net/listen/accept.ts";
import type { OffloadOptions } from "#net/listen/accept-offload.ts";

/** The kernel brings connections there that did not ask for it. */
export const CAPTURING: ReadonlySet<string> = new Set(["redirected", "transparent"]);
/** Handshakes that say the destination. */
const DECIDABLE: ReadonlySet<string> = new Set(["mixed", "socks", "http", ...CAPTURING]);

/** Those whose requests workers understand. */
export interface DecidableUsers {
  readonly written: WrittenUsers;
  readonly letIn: LetIn;
}

export interface DecidableListener {
  /** What the sessions of its connections have in common. */
  readonly context: ListenerContext;
  /** Where all of them lead; null: each client asks. */
  readonly destination: Endpoint | null;
  /** Of a listener of users; null: it is none. */
  readonly users: DecidableUsers | null;
}

/** Null: its clients are no users, or the main thread has to know each at once. */
function usersOf(options: OffloadOptions): DecidableUsers | null {
  const { handshake } = options;
  const showsFirst = handshake === "first-bytes" || (handshake === "tls" && options.showsFirst === true);
  const letIn = showsFirst ? options.letIn : undefined;
  const written = letIn?.users() ?? null;
  return letIn === undefined || written === null ? null : { written, letIn };
}

/** Null: workers cannot decide its connections. */
export function decidableBy(options: OffloadOptions): DecidableListener | null {
  const { context = null } = options;
  const { destination = null } = options.handshake === "none" ? options : {};
  const users = usersOf(options);
  const isKnown = destination !== null || users !== null || DECIDABLE.has(options.handshake);
  return context !== null && isKnown ? { context, destination, users } : null;
}
