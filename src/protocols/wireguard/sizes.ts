/** Bytes of what WireGuard's messages are made of. */
export const KEY_BYTES = 32;
export const TAG_BYTES = 16;
export const MAC_BYTES = 16;
