/** Why a QUIC connection ends, as codes that travel in CONNECTION_CLOSE (RFC 9000 §20.1). */
import { ProtocolError } from "#core/errors.ts";

export const NO_ERROR = 0x0;
export const INTERNAL_ERROR = 0x1;
export const FLOW_CONTROL_ERROR = 0x3;
export const STREAM_LIMIT_ERROR = 0x4;
export const STREAM_STATE_ERROR = 0x5;
export const FINAL_SIZE_ERROR = 0x6;
export const FRAME_ENCODING_ERROR = 0x7;
export const TRANSPORT_PARAMETER_ERROR = 0x8;
export const CONNECTION_ID_LIMIT_ERROR = 0x9;
export const PROTOCOL_VIOLATION = 0xa;
export const APPLICATION_ERROR = 0xc;
export const CRYPTO_BUFFER_EXCEEDED = 0xd;
export const AEAD_LIMIT_REACHED = 0xf;
/** Plus the alert of TLS (RFC 9001 §4.8). */
export const CRYPTO_ERROR = 0x100;

/** The peer broke a rule of the protocol, or its bytes cannot be read: the connection closes with this code. */
export class QuicFault extends ProtocolError {
  readonly transportCode: number;

  constructor(transportCode: number, message: string) {
    super(message);
    this.transportCode = transportCode;
  }
}
