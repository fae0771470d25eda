/** Classes by who must act. Each has a stable `code`; causes are kept; secrets never enter a message. */

/** Something in the configuration is wrong; the user edits the file. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly code = "CONFIG";
}

/** Other programs start with it and this one does nothing with it: it costs the rule or the entry, never the file. */
export class UnusableError extends ConfigError {}

/** A peer sent bytes that its protocol does not allow. Costs that peer its connection and no other peer anything. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  readonly code = "PROTOCOL";
}

/** A peer did not authenticate. */
export class AuthError extends Error {
  override readonly name = "AuthError";
  readonly code = "AUTH";
}

/** The store refused to read or write. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly code = "STORE";
}

/** An API request that cannot be served; `status` is the HTTP status. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code = "API";
  readonly status: number;
  /** When the same request may be tried again; null: that is not known. */
  readonly retryAfterSeconds: number | null;
  constructor(
    status: number,
    message: string,
    options: ErrorOptions & { readonly retryAfterSeconds?: number } = {},
  ) {
    super(message, options);
    this.status = status;
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
  }
}

/** For a change that would have to wait behind `waiting` others. */
export function tooManyChanges(waiting: number): ApiError {
  return new ApiError(503, `${waiting} changes wait already`);
}

/**
 * Why a dial did not work out: `rejected` by REJECT, `dropped` by REJECT-DROP, `forbidden` (this client may not go
 * there, or the session is a loop), `resolve` (no address), `refused`,
 * `unreachable` (network or host), `timeout`, `aborted` by us, `unsupported` (this outbound cannot do it), `failed`
 * (everything else, such as a proxy that answered with an error).
 */
export type DialFailure =
  | "rejected"
  | "dropped"
  | "forbidden"
  | "resolve"
  | "refused"
  | "unreachable"
  | "timeout"
  | "aborted"
  | "unsupported"
  | "failed";

export class DialError extends Error {
  override readonly name = "DialError";
  readonly code = "DIAL";
  readonly reason: DialFailure;
  /** It happened on the way to the server of a node: the destination itself was never asked for. */
  readonly atNode: boolean;
  constructor(
    reason: DialFailure,
    message: string,
    options: ErrorOptions & { readonly atNode?: boolean } = {},
  ) {
    super(message, options);
    this.reason = reason;
    this.atNode = options.atNode ?? false;
  }
}

/** The same of the way to the server of a node. */
export function atNode({ reason, message, cause }: DialError): DialError {
  return new DialError(reason, message, { cause, atNode: true });
}

const REASON_BY_ERRNO: Readonly<Record<string, DialFailure>> = {
  ECONNREFUSED: "refused",
  ENETUNREACH: "unreachable",
  EHOSTUNREACH: "unreachable",
  EADDRNOTAVAIL: "unreachable",
  ENETDOWN: "unreachable",
  EHOSTDOWN: "unreachable",
  ETIMEDOUT: "timeout",
  ABORT_ERR: "aborted",
};

/** Wraps what a socket or a lower layer threw, keeping the reason that it shows. */
export function asDialError(error: unknown, context: string): DialError {
  if (error instanceof DialError) return error;
  const cause = error instanceof Error ? error : new Error(String(error));
  const errno = errnoOf(cause) ?? "";
  return new DialError(REASON_BY_ERRNO[errno] ?? "failed", `${context}: ${cause.message}`, { cause });
}

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EADDRNOTAVAIL: "no interface of this machine has this address",
  EACCES: "this user may not; ports below 1024 need CAP_NET_BIND_SERVICE",
};

/** Why the system does not let us listen; the text around it has the address already. */
export function listenFault(error: unknown): string {
  const errno = errnoOf(error) ?? "";
  const fault = LISTEN_FAULTS[errno];
  return fault === undefined ? messageOf(error) : `${fault} (${errno})`;
}

/** The system's code of an error (`ENOENT`); undefined where it has none. */
export function errnoOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** What was thrown, as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** The text of anything that was thrown; of two faults, where letting go failed behind a failure, the first one first. */
export function messageOf(error: unknown): string {
  if (error instanceof SuppressedError) return `${messageOf(error.suppressed)}; ${messageOf(error.error)}`;
  return error instanceof Error ? error.message : String(error);
}

/**
 * What every `abort` of ours gives as its reason. Without one the runtime makes an exception whose stack keeps the frames of
 * the caller, and with them whole configurations, in memory for as long as the signal lives.
 */
export const ABORTED = new DOMException("this is over", "AbortError");

/** For a request that waits for work of a runtime, or of the program, which ends before the work does. */
export const INTERRUPTED = "a reload or the end of the program interrupted the update";
