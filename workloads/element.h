/* element.h: the trilinear hexahedron of minife.c and of its SYCL twin, and the equation that both
 * solve. C11 and C++11, and compiled for the device: no header of the host is used. */
#define SOURCE (-12.0) /* minus the Laplacian of exact() */

enum { CORNERS = 8 };

static double exact(double x, double y, double z)
{
    return x * x + 2 * y * y + 3 * z * z + x * y * z + x - y + 2 * z;
}

/* Corner c of the reference cube [-1, 1]^3: bits 0, 1, 2 are x, y, z. */
static double side(int corner, int direction)
{
    return corner >> direction & 1 ? 1 : -1;
}

/* Gradients of the trilinear shape functions at a point of the reference cube, and their values. */
static void shape(const double at[3], double values[CORNERS], double gradients[CORNERS][3])
{
    for (int c = 0; c < CORNERS; c++) {
        double f[3];
        for (int d = 0; d < 3; d++)
            f[d] = 0.5 * (1 + side(c, d) * at[d]);
        values[c] = f[0] * f[1] * f[2];
        gradients[c][0] = 0.5 * side(c, 0) * f[1] * f[2];
        gradients[c][1] = 0.5 * side(c, 1) * f[0] * f[2];
        gradients[c][2] = 0.5 * side(c, 2) * f[0] * f[1];
    }
}

/* Inverts the Jacobian; returns its determinant. */
static double invert(const double j[3][3], double inverse[3][3])
{
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 3; column++) {
            int a = (column + 1) % 3, b = (column + 2) % 3, c = (row + 1) % 3, d = (row + 2) % 3;
            inverse[row][column] = j[a][c] * j[b][d] - j[a][d] * j[b][c];
        }
    double determinant = j[0][0] * inverse[0][0] + j[0][1] * inverse[1][0] +
                         j[0][2] * inverse[2][0];
    for (int entry = 0; entry < 9; entry++)
        inverse[entry / 3][entry % 3] /= determinant;
    return determinant;
}

/* Adds a Gauss point's part of the element's stiffness and load; nodes are the corners'
 * coordinates. */
static void add_point(const double nodes[CORNERS][3], const double at[3],
                      double stiffness[CORNERS][CORNERS], double load[CORNERS])
{
    double values[CORNERS], reference[CORNERS][3], gradients[CORNERS][3] = {{0}},
                                                   jacobian[3][3] = {{0}}, inverse[3][3];
    shape(at, values, reference);
    for (int c = 0; c < CORNERS; c++)
        for (int entry = 0; entry < 9; entry++)
            jacobian[entry / 3][entry % 3] += reference[c][entry / 3] * nodes[c][entry % 3];
    double volume = invert(jacobian, inverse);
    for (int c = 0; c < CORNERS; c++)
        for (int entry = 0; entry < 9; entry++)
            gradients[c][entry / 3] += inverse[entry / 3][entry % 3] * reference[c][entry % 3];
    for (int row = 0; row < CORNERS; row++) {
        load[row] += volume * SOURCE * values[row];
        for (int column = 0; column < CORNERS; column++)
            stiffness[row][column] += volume * (gradients[row][0] * gradients[column][0] +
                                                gradients[row][1] * gradients[column][1] +
                                                gradients[row][2] * gradients[column][2]);
    }
}
