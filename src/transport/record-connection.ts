import type { DetachedState, RecordState } from "#core/wire-state.ts";

/** What turns the bytes of one connection into payload and back, without I/O: TLS 1.3, or what looks like it. */
export interface RecordConnection extends Disposable {
  /** The peer is known, payload may go both ways. */
  readonly isSecure: boolean;
  /** The peer said that no more payload comes. */
  readonly hasEnded: boolean;
  /** Bytes that came and were not read. */
  readonly unreadBytes: number;
  /** What a worker that goes on with it is given. */
  readonly wireKind: "records" | "encrypted";
  /** A worker can go on with it now. */
  readonly canDepart: boolean;
  /** To be called first. */
  start(): void;
  feed(bytes: Buffer): void;
  /** The payload of one record; null: more bytes are needed, or the peer has ended. What it throws ends the connection. */
  read(): Buffer | null;
  write(payload: Uint8Array): Buffer;
  /** What says that no more payload follows; empty where there is no such word. */
  end(): Buffer;
  /** Bytes for the peer that arose meanwhile; null: none. */
  takeOutput(): Buffer | null;
  /** What came and was not read, removed. */
  takeUnread(): Buffer;
  /** Only while it can. */
  depart(): DetachedState;
  /** Behind that: no other goes on with it any more. Absent: it does not come back. */
  comeBack?(state: RecordState): void;
}
