/** What is said about one stream besides its bytes (RFC 9000 §19.4, §19.5, §19.10), again where it was lost and still counts. */
import type { ControlFrame, ControlQueue } from "#transport/quic/control-queue.ts";
import { FRAME } from "#transport/quic/wire/frames.ts";
import type { ReceivePart } from "./receive-part.ts";
import type { SendPart } from "./send-part.ts";

const VARINT = 8;

/** The peer may send up to the limit of the moment at which the frame is written. */
export function maxStreamDataFrame(controls: ControlQueue, id: number, receive: ReceivePart): ControlFrame {
  return controls.make(
    1 + 2 * VARINT,
    (out) => {
      out.byte(FRAME.maxStreamData);
      out.varint(id);
      out.varint(receive.limit);
    },
    () => receive.finalSize !== null,
  );
}

/** No more is sent. `onAcked`: the peer knows. */
export function resetStreamFrame(
  controls: ControlQueue,
  { id, code, send }: { readonly id: number; readonly code: number; readonly send: SendPart },
  onAcked: () => void,
): ControlFrame {
  return controls.make(
    1 + 3 * VARINT,
    (out) => {
      out.byte(FRAME.resetStream);
      out.varint(id);
      out.varint(code);
      out.varint(send.sentBytes);
    },
    () => send.isResetAcked,
    () => {
      send.isResetAcked = true;
      onAcked();
    },
  );
}

/** No more is read: the peer is asked to send none. */
export function stopSendingFrame(
  controls: ControlQueue,
  { id, code, receive }: { readonly id: number; readonly code: number; readonly receive: ReceivePart | null },
): ControlFrame {
  return controls.make(
    1 + 2 * VARINT,
    (out) => {
      out.byte(FRAME.stopSending);
      out.varint(id);
      out.varint(code);
    },
    () => receive?.isComplete === true,
  );
}
