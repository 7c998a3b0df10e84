export type * from "./definition.cjs";
