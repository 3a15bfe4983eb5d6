export function useEffect(effect: () => void | (() => void), when?: any[]): void;
export function useMemo<T>(make: () => T, when: any[]): T;
export function useRef<T>(first: T): {current: T};
export function useLayoutEffect(effect: () => void | (() => void), when?: any[]): void;
