import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;

/**
 * Makes Hudi's objects in each version of Hudi: what moved between 0.15 and 1 are parameters, and what is public.
 *
 * Each alternative is a list of arguments; the first that a constructor or static method takes is taken.
 */
final class HudiMade {
    private HudiMade() {
    }

    /** By a constructor, public or not. */
    static <T> T by(Class<T> made, Object[]... alternatives) throws ReflectiveOperationException {
        for (Object[] arguments : alternatives) {
            for (Constructor<?> each : made.getDeclaredConstructors()) {
                if (takes(each, arguments)) {
                    each.setAccessible(true);
                    return made.cast(each.newInstance(arguments));
                }
            }
        }
        throw new NoSuchMethodException("no constructor of " + made + " that takes any of these arguments");
    }

    /** By a static method. */
    static <T> T byMethod(Class<T> made, String name, Object[]... alternatives) throws ReflectiveOperationException {
        for (Object[] arguments : alternatives) {
            for (Method each : made.getMethods()) {
                if (each.getName().equals(name) && Modifier.isStatic(each.getModifiers()) && takes(each, arguments)) {
                    return made.cast(each.invoke(null, arguments));
                }
            }
        }
        throw new NoSuchMethodException("no " + name + " of " + made + " that takes any of these arguments");
    }

    private static boolean takes(Executable what, Object[] arguments) {
        Class<?>[] wanted = what.getParameterTypes();
        boolean takes = wanted.length == arguments.length;
        for (int number = 0; takes && number < wanted.length; number++) {
            takes = wanted[number].isInstance(arguments[number])
                    || wanted[number] == int.class && arguments[number] instanceof Integer;
        }
        return takes;
    }
}
