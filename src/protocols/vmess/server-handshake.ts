import { ProtocolError } from "#core/errors.ts";
import type { HandshakeStep } from "#net/listen/read-handshake.ts";
import { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import {
  AUTH_ID_BYTES,
  COMMAND_UDP,
  openLength,
  openRequest,
  OPTION_CHUNKS,
  PREFIX_BYTES,
  type RequestHeader,
  SECURITY_AES,
  SECURITY_ZERO,
} from "./header.ts";
import { findByAuthId, type VmessUser, type VmessUsers } from "./users.ts";

const MAX_SKEW_SECONDS = 120;
/** A header stays valid for the skew in both directions. */
const AUTH_ID_WINDOW_MS = 2 * MAX_SKEW_SECONDS * 1000;
const SESSION_WINDOW_MS = 180_000;
const REMEMBERED = 65_536;

/** What the listeners of a host remember of recent requests. `now`: monotonic milliseconds. */
export class RequestMemory {
  readonly authIds: ReplayFilter;
  readonly sessions: ReplayFilter;

  constructor(now: () => number = () => performance.now()) {
    this.authIds = new ReplayFilter({ capacity: REMEMBERED, windowMs: AUTH_ID_WINDOW_MS, now });
    this.sessions = new ReplayFilter({ capacity: REMEMBERED, windowMs: SESSION_WINDOW_MS, now });
  }
}

/** Lets every request in once. */
export class RequestGuard {
  readonly #memory: RequestMemory;
  readonly #nowMs: () => number;

  constructor(nowMs: () => number, memory: RequestMemory) {
    this.#nowMs = nowMs;
    this.#memory = memory;
  }

  /** Throws `ProtocolError` for a request from another time, or from before what is remembered. */
  checkTime(unixSeconds: number): void {
    const skew = unixSeconds - Math.floor(this.#nowMs() / 1000);
    if (!(Math.abs(skew) <= MAX_SKEW_SECONDS))
      throw new ProtocolError(`the client's clock differs by ${skew} s, ${MAX_SKEW_SECONDS} s are allowed`);
    if (!this.#memory.authIds.covers(unixSeconds, this.#nowMs()))
      throw new ProtocolError("the request was made before this server started");
  }

  /** Throws `ProtocolError` for a request that was here before. */
  admit(prefix: Buffer, user: VmessUser, { key, iv }: RequestHeader): void {
    const { authIds, sessions } = this.#memory;
    const known = !authIds.add(prefix.subarray(0, AUTH_ID_BYTES));
    if (known || !sessions.add(Buffer.concat([user.id, key, iv])))
      throw new ProtocolError("the request was made before");
  }
}

export interface Greeting {
  readonly user: VmessUser;
  readonly request: RequestHeader;
}

/**
 * One step function per connection. Throws `ProtocolError` for every kind of unwelcome peer alike. What the first bytes
 * proved is kept, so that a peer which sends single bytes does not make each of them cost the keys of all users.
 */
export function serverHandshake(users: VmessUsers, guard: RequestGuard): HandshakeStep<Greeting> {
  let known: { readonly user: VmessUser; readonly size: number } | null = null;
  return (arrived) => {
    if (known === null) {
      const prefix = arrived.peek(PREFIX_BYTES);
      if (prefix === null) return null;
      const found = findByAuthId(users, prefix);
      if (found === null) throw new ProtocolError("no user made this request");
      guard.checkTime(found.unixSeconds);
      known = { user: found.user, size: PREFIX_BYTES + openLength(found.user.commandKey, prefix) };
    }
    const { user, size } = known;
    const whole = arrived.take(size);
    if (whole === null) return null;
    const request = openRequest(
      user.commandKey,
      whole.subarray(0, PREFIX_BYTES),
      whole.subarray(PREFIX_BYTES),
    );
    guard.admit(whole, user, request);
    const { security, command, options } = request;
    if (security < SECURITY_AES || security > SECURITY_ZERO)
      throw new ProtocolError(`a security of ${security} is not known`);
    if (command === COMMAND_UDP && (options & OPTION_CHUNKS) === 0)
      throw new ProtocolError("datagrams without chunks have no bounds");
    return { user, request };
  };
}
