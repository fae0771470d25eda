/** Connections that a worker has decided and dialled by itself, from the moment that the main thread learns of them. */
import type { WorkerConnection } from "#core/accepted.ts";
import { reportDial, type Decision } from "#core/router.ts";
import { ActiveRelay, type DialledConnection } from "./active-relay.ts";
import type { DecidedConnection } from "./decision-source.ts";
import { matched } from "./connection-log.ts";
import { seenOf } from "./ended-ring.ts";
import type { SessionEnv } from "./session-env.ts";

/** One that has ended: what would have been told step by step. */
export function settleDecided(
  { metadata, dialled }: DecidedConnection,
  decision: Decision,
  bytes: { readonly upload: number; readonly download: number },
  { flows, live, log }: SessionEnv,
): void {
  flows.decided(decision);
  reportDial(decision, null);
  flows.connected(decision, () => dialled.ip);
  log.info(() => matched(metadata, decision));
  live.count("upload", bytes.upload);
  live.count("download", bytes.download);
  live.keepEnded({
    metadata,
    decision: seenOf(decision),
    uploadBytes: bytes.upload,
    downloadBytes: bytes.download,
    remoteAddress: dialled.ip,
    endedAtMs: Date.now(),
    reason: "over",
    detail: "",
  });
}

/** One that is still relayed: it becomes like any other. */
export function joinDecided(
  worker: WorkerConnection,
  { metadata, dialled }: DecidedConnection,
  decision: Decision,
  env: SessionEnv,
  onOver: () => void,
): void {
  env.enter();
  const entry = env.live.open(metadata);
  entry.decision = decision;
  entry.remoteAddress = dialled.ip;
  env.flows.decided(decision);
  const noted = env.loops.dials(metadata, decision, worker, dialled);
  const onEnd = (): void => {
    onOver();
    env.leave();
  };
  relayByWorker(worker, { entry, noted, onEnd }, env);
}

export function relayByWorker(
  worker: WorkerConnection,
  dialled: Omit<DialledConnection, "remote">,
  env: SessionEnv,
): void {
  const active = new ActiveRelay({ ...dialled, remote: null }, env);
  dialled.entry.resets = env.backend?.resume?.(worker, active.meter, env, active) ?? null;
}
