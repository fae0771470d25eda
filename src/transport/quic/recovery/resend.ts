/** What packets carried that are lost, or may be: it is said again. */
import { byteAt, float64At } from "#lib/at.ts";
import type { StreamOutcomes } from "./acked-ranges.ts";
import { IN_FLIGHT, type SentPackets } from "./sent-packets.ts";

/** Of one packet. Its items are told once, whether or not it is acknowledged later. */
export function sayAgain(streams: StreamOutcomes, sent: SentPackets, number: number): void {
  const slot = sent.slotOf(number);
  const stream = float64At(sent.stream, slot);
  if (stream >= 0)
    streams.onLost(
      stream,
      float64At(sent.offset, slot),
      sent.length[slot] ?? 0,
      byteAt(sent.isLast, slot) === 1,
    );
  for (const item of sent.items.get(number) ?? []) item.onLost();
  sent.items.delete(number);
}

/** Of the packets in flight, which stay there; `most`: of so many of the oldest. */
export function sayFlightAgain(streams: StreamOutcomes, sent: SentPackets, most = Infinity): void {
  let count = 0;
  for (let number = sent.first; number < sent.next && count < most; number++) {
    if (byteAt(sent.state, sent.slotOf(number)) !== IN_FLIGHT) continue;
    count++;
    sayAgain(streams, sent, number);
  }
}
