/** In the environment of a process that is to take over: the number of its end of the link, and of the process that has the other. */
export const LINK_VARIABLE = "WEIR_UPGRADE";
