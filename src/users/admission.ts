/** Where the sessions of managed users pass: they get their user's name, and those beyond a limit are refused. */
import { NO_EVENTS, type UserEvents } from "#core/events.ts";
import type { Metadata, Session, StreamSession } from "#core/session.ts";
import { abortStream } from "#core/stream.ts";
import { eventUser } from "./user-reports.ts";
import type { Found, UserRegistry } from "./user-registry.ts";

export interface AdmittedSession {
  readonly session: Session;
  /** To be called once, when the session has ended. */
  leave(): void;
}

const NOTHING = (): void => {};

/** A text says why the session may not begin. Sessions without a managed user pass unchanged. */
export function passGate(
  registry: UserRegistry | null,
  session: Session,
  nowMs: number,
  events: UserEvents = NO_EVENTS,
): AdmittedSession | string {
  const { inbound, source } = session.metadata;
  const found = inbound.user === null ? null : (registry?.findAt(inbound.name, inbound.user) ?? null);
  if (registry === null || found === null) return { session, leave: NOTHING };
  const status = registry.statusOf(found);
  if (registry.isDraining) return "this node is being taken out of service";
  if (status !== "active") return `the user is ${status}`;
  const { user } = found;
  const who = { listener: inbound.name, id: user.id };
  const from = { ip: source.ip, close: () => endSession(session) };
  const presence = registry.presences.get(who.listener, who.id);
  const isKnown = presence !== null && presence.origin(source.ip) !== null;
  const leave = registry.presences.enter(who, from, user.limits, nowMs);
  if (typeof leave === "string") {
    events.refused(eventUser(found), isKnown || user.limits.ips === 0 ? "connections" : "addresses");
    return leave;
  }
  if (!isKnown) events.connected(eventUser(found), source.ip);
  return { session: named(session, found), leave };
}

/** Rules and people know the user by name, counters by id. */
function named(session: Session, { user }: Found): Session {
  const { metadata } = session;
  const inbound = { ...metadata.inbound, user: user.name, userId: user.id };
  const renamed = { ...metadata, inbound };
  return session.network === "udp" ? { ...session, metadata: renamed } : streamNamed(session, renamed);
}

/** Looks at the stream only when it is looked at itself: until then a worker may keep the socket. */
function streamNamed(session: StreamSession, metadata: Metadata): StreamSession {
  return {
    network: "tcp",
    metadata,
    get stream() {
      return session.stream;
    },
    get offloaded() {
      return session.offloaded ?? null;
    },
    reply: (failure) => session.reply(failure),
    ...(session.ended === undefined ? {} : { ended: session.ended }),
  };
}

function endStream(session: StreamSession): void {
  const worker = session.offloaded?.worker ?? null;
  if (worker === null) abortStream(session.stream);
  else worker.reset();
}

function endSession(session: Session): void {
  if (session.network === "tcp") return endStream(session);
  session.flow[Symbol.asyncDispose]().then(NOTHING, NOTHING); // a flow that cannot be closed cannot be repaired either
}
