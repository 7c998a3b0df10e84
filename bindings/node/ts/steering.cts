import { invalid } from "./error.cjs";
import { native, type NativeSteering } from "./native.cjs";
import { NATIVE } from "./prompt.cjs";

/** A queue of user messages for a running turn. */
export class Steering {
  /** @internal */
  readonly [NATIVE]: NativeSteering = new native.NativeSteering();

  /** Adds a message, which the model receives in the next round. */
  send(message: string): void {
    if (typeof message !== "string") throw invalid("message: expected a string");
    this[NATIVE].send(message);
  }

  /** Whether a message is pending. */
  get hasPending(): boolean {
    return this[NATIVE].hasPending();
  }
}
