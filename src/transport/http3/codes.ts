/** Why an HTTP/3 connection or a stream of it ends (RFC 9114 §8.1). */
export const H3_NO_ERROR = 0x100;
export const H3_STREAM_CREATION_ERROR = 0x103;
export const H3_CLOSED_CRITICAL_STREAM = 0x104;
export const H3_FRAME_UNEXPECTED = 0x105;
export const H3_FRAME_ERROR = 0x106;
export const H3_EXCESSIVE_LOAD = 0x107;
export const H3_MISSING_SETTINGS = 0x10a;
export const H3_REQUEST_INCOMPLETE = 0x10d;
export const H3_MESSAGE_ERROR = 0x10e;
