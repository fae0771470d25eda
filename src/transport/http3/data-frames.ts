/** A body as DATA frames (RFC 9114 §7.2.1). */
import { Transform, type TransformCallback } from "node:stream";
import { varintBytes, WireWriter } from "#transport/quic/wire/writer.ts";
import { DATA_FRAME } from "./request.ts";

export class DataFrames extends Transform {
  static encode(body: Uint8Array): Buffer {
    const frame = Buffer.allocUnsafe(1 + varintBytes(body.length) + body.length);
    const out = new WireWriter(frame);
    out.byte(DATA_FRAME);
    out.varint(body.length);
    out.put(body);
    return frame;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    done(null, DataFrames.encode(chunk));
  }
}
