/** Numbers of the client's wire, as for a wire of TLS: SSL STAGE FAULT */
export const STAGE_NUMBER = 1;
export const FAULT_NUMBER = 2;
/** The handshake is done. */
export const HANDSHAKE_DONE = 0;
/** The handshake is not done, perhaps not even begun (then there is no SSL object): the taker continues it. */
export const HANDSHAKE_BEGUN = 1;
/** Why, is in the fault. Nothing is left of it, nor of the next ones. */
export const HANDSHAKE_FAILED = 2;
export const HANDSHAKE_LATE = 3;
