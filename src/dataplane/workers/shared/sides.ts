/** The two sockets of a relayed connection, and the two directions between them: the index of each in shared memory. */

export type Side = 0 | 1;
export const CLIENT = 0;
export const REMOTE = 1;

export type FlowDirection = 0 | 1;
export const UPLOAD = 0;
