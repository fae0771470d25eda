import type { Datagram } from "#core/session.ts";

/** The datagrams of one flow as messages of its protocol, several for one that is too long. */
export interface FlowChannel<Message> {
  /** The payload is lent until it returns. */
  send(item: Datagram): void;
  /** The datagram that is whole now; null: none is. Its payload may be a view of the message. */
  take(message: Message): Datagram | null;
  /** Tells the peer that the flow was ended on this side; absent: the protocol has no word for that. */
  dissociate?(): void;
}
